#include "src/verification/diagnosis/meanings/normaliser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

constexpr double kEpsilon = 1e-10;  // the operator's

bool has_normaliser(const FailingRun& run) {
  return run.forward && run.argument("z0") != nullptr && run.expected("o") != nullptr;
}

/// o times d_t / d'_t, where d'_t sums the keys of tokens from `first(t)` to `last(t)`, z0 where first is 0
/// or `always_initial`.
std::optional<Prediction> with_divisor(const FailingRun& run, const std::function<int64_t(int64_t)>& first,
                                       const std::function<int64_t(int64_t)>& last,
                                       bool always_initial = false) {
  const Tensor &q = run.inputs().at("q"), &k = run.inputs().at("k");
  const auto z0 = run.inputs().find("z0");
  const int64_t H = run.problem.sizes.H, K = run.problem.sizes.K, V = run.problem.sizes.V;
  Prediction p = reference_prediction(run);
  PredictedOutput& o = p.at("o");
  int64_t n = 0;
  for (const auto& [start, length] : run.spans()) {
    for (int64_t t = 0; t < length; ++t)
      for (int64_t h = 0; h < H; ++h) {
        double right = kEpsilon, other = kEpsilon;
        for (int64_t c = 0; c < K; ++c) {
          const double query = run.problem.scale * q.value(((start + t) * H + h) * K + c);
          const double from_state = z0 == run.inputs().end() ? 0 : z0->second.value((n * H + h) * K + c);
          right += query * from_state, other += always_initial || first(t) == 0 ? query * from_state : 0;
          for (int64_t j = 0; j <= t; ++j) {
            const double term = query * k.value(((start + j) * H + h) * K + c);
            right += term;
            if (j >= first(t) && j <= last(t)) other += term;
          }
        }
        for (int64_t v = 0; v < V; ++v) {
          const auto i = static_cast<size_t>(((start + t) * H + h) * V + v);
          o.mid[i] *= right / other, o.bound[i] *= 2 * std::max(1.0, right / other);
        }
      }
    ++n;
  }
  return p;
}

}  // namespace

std::vector<Variant> divisor_of_own_chunk(const FailingRun& run) {
  std::vector<Variant> v;
  if (!has_normaliser(run)) return v;
  for (const int64_t C : chunk_sizes(run))
    for (const bool initial : {false, true})
      if (!initial || run.inputs().count("z0"))
        v.push_back({fmt::format("the divisor sums the keys of its own chunk of {} only{}", C,
                                 initial ? ", and the initial ones" : ""),
                     [&run, C, initial] {
                       return with_divisor(
                           run, [C](int64_t t) { return t / C * C; }, [](int64_t t) { return t; }, initial);
                     }});
  return v;
}

std::vector<Variant> divisor_without_own_token(const FailingRun& run) {
  if (!has_normaliser(run)) return {};
  return {{"the divisor lacks the token's own key", [&run] {
             return with_divisor(
                 run, [](int64_t) { return int64_t{0}; }, [](int64_t t) { return t - 1; });
           }}};
}

std::vector<DivisorPart> divisor_gradients(const FailingRun& run, bool own, int64_t chunk) {
  if (!run.backward || run.argument("z0") == nullptr || !run.expected("dq") || !run.expected("dk")) return {};
  const Tensor &q = run.inputs().at("q"), &k = run.inputs().at("k"), &d_o = run.inputs().at("do");
  const auto z0 = run.inputs().find("z0"), dzt = run.inputs().find("dzt");
  const ReferenceResult forward = run.op->evaluate(run.problem);
  const auto o = std::find_if(forward.outputs.begin(), forward.outputs.end(),
                              [](const auto& x) { return x.name == "o"; });
  if (o == forward.outputs.end()) return {};
  const int64_t H = run.problem.sizes.H, K = run.problem.sizes.K, V = run.problem.sizes.V;
  PredictedOutput dq{std::vector<double>(run.expected("dq")->mid.size()),
                     std::vector<double>(run.expected("dq")->mid.size())};
  PredictedOutput dk{std::vector<double>(run.expected("dk")->mid.size()),
                     std::vector<double>(run.expected("dk")->mid.size())};
  int64_t n = 0;
  for (const auto& [start, length] : run.spans()) {
    for (int64_t h = 0; h < H; ++h) {
      const auto at = [&, start = start](int64_t t, int64_t c) { return ((start + t) * H + h) * K + c; };
      const auto state = [&](const auto& x, int64_t c) {
        return own || x == run.inputs().end() ? 0.0 : x->second.value((n * H + h) * K + c);
      };
      std::vector<double> z(static_cast<size_t>(K)), right(static_cast<size_t>(K)),
          dd(static_cast<size_t>(length));
      for (int64_t c = 0; c < K; ++c)
        right[static_cast<size_t>(c)] =
            z0 == run.inputs().end() ? 0.0 : z0->second.value((n * H + h) * K + c);
      for (int64_t t = 0; t < length; ++t) {
        double d = kEpsilon, dot = 0;
        for (int64_t c = 0; c < K; ++c) {
          right[static_cast<size_t>(c)] += k.value(at(t, c));
          d += run.problem.scale * q.value(at(t, c)) * right[static_cast<size_t>(c)];
        }
        for (int64_t v = 0; v < V; ++v) {
          const int64_t i = ((start + t) * H + h) * V + v;
          dot += d_o.value(i) * o->mid[static_cast<size_t>(i)];
        }
        dd[static_cast<size_t>(t)] = -run.problem.scale * dot / d;
        for (int64_t c = 0; c < K; ++c)
          dq.mid[static_cast<size_t>(at(t, c))] =
              dd[static_cast<size_t>(t)] * (own ? k.value(at(t, c)) : right[static_cast<size_t>(c)]);
      }
      for (int64_t c = 0; c < K; ++c) {
        double Z = state(dzt, c);
        for (int64_t t = length - 1; t >= 0; --t) {
          const double term = dd[static_cast<size_t>(t)] * q.value(at(t, c));
          if (t % chunk == chunk - 1) Z = 0;
          Z += term;
          dk.mid[static_cast<size_t>(at(t, c))] = own ? term : Z;
        }
      }
    }
    ++n;
  }
  const char* const whose = own ? "the token's own part" : "the part";
  return {{fmt::format("{} of dq through the divisor", whose), {{"dq", dq}}},
          {fmt::format("{} of dk through the divisor", whose), {{"dk", dk}}}};
}

std::vector<Variant> divisor_gradient_of_own_chunk(const FailingRun& run) {
  std::vector<Variant> v;
  if (divisor_gradients(run, false).empty()) return v;
  for (const int64_t C : chunk_sizes(run))
    v.push_back(
        {fmt::format("the gradient of k through the divisor ends with each chunk of {}", C), [&run, C] {
           const std::vector<DivisorPart> whole = divisor_gradients(run, false),
                                          cut = divisor_gradients(run, false, C);
           Prediction p = reference_prediction(run);
           PredictedOutput& dk = p.at("dk");
           const std::vector<double>&from = whole[1].part.at("dk").mid, &to = cut[1].part.at("dk").mid;
           for (size_t i = 0; i < dk.mid.size(); ++i)
             dk.mid[i] += to[i] - from[i], dk.bound[i] += 0x1p-20 * std::fabs(to[i] - from[i]);
           return std::optional(p);
         }});
  return v;
}

std::vector<Variant> divisor_gradient_without_own_token(const FailingRun& run) {
  std::vector<Variant> v;
  for (DivisorPart& own : divisor_gradients(run, true))
    v.push_back({own.text + " is missing", [&run, part = own.part] {
                   Prediction p = reference_prediction(run);
                   for (const auto& [name, less] : part)
                     for (size_t i = 0; i < less.mid.size(); ++i)
                       p.at(name).mid[i] -= less.mid[i],
                           p.at(name).bound[i] += 0x1p-20 * std::fabs(less.mid[i]);
                   return std::optional(p);
                 }});
  return v;
}

}  // namespace assay
