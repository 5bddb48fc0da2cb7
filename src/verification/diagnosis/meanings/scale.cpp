// Meanings of the scale.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

std::vector<Variant> with_scale(const FailingRun& run, double scale, std::string text) {
  if (!run.op->takes_scale || scale == run.problem.scale || !std::isfinite(scale)) return {};
  return {{std::move(text), [&run, scale] {
             return evaluate_with(run, run.inputs(), [scale](Problem& p) { p.scale = scale; });
           }}};
}

/// What reaches an output within a chunk of C, or over its edges, has the scale times `factor`; what comes
/// from the final state's cotangent has no scale.
std::optional<Prediction> partly_scaled(const FailingRun& run, int64_t C, bool within, double factor) {
  const auto usual = [](const TokenPlace& p) { return Events{{p.row, p.row, p.row}}; };
  Schedule queries = schedule_of(run, usual);
  queries.final_state = false;
  Schedule chunks = schedule_of(run, [C](const TokenPlace& p) {
    Events e{{p.row, p.row, p.row}};
    if (p.t % C == 0)
      e.insert(e.begin(), Event{-1, -1, -1, true});  // the initial state comes over an edge too
    return e;
  });
  chunks.initial_state = chunks.final_state = false;
  const auto all = evaluate_schedule(run, queries), inside = evaluate_schedule(run, chunks);
  if (!all || !inside) return std::nullopt;
  const Prediction part = within ? *inside : combine(1, *all, -1, *inside);
  Prediction p = combine(1, reference_prediction(run), factor - 1, part);
  const Prediction right = reference_prediction(run);  // bounds: those of what is there, scaled
  for (auto& [name, output] : p)
    for (size_t i = 0; i < output.bound.size(); ++i)
      output.bound[i] = right.at(name).bound[i] * std::max(1.0, std::fabs(factor));
  return p;
}

std::vector<Variant> by_parts(const FailingRun& run, double factor, const char* what) {
  std::vector<Variant> v;
  if (!run.op->takes_scale || run.problem.scale == 1 || !is_linear(run) || !can_reset(run)) return v;
  std::vector<int64_t> sizes = chunk_sizes(run);
  for (const int64_t C : sizes)
    for (const bool within : {true, false})
      v.push_back({fmt::format("what passes {} chunks of {} {}", within ? "within" : "between", C, what),
                   [&run, C, within, factor] { return partly_scaled(run, C, within, factor); }});
  return v;
}

/// One factor of a product with the scale once more or once less; of all of them that give the same outputs
/// one is enough.
std::vector<Variant> on_one_factor(const FailingRun& run, double factor, const char* what) {
  std::vector<Variant> v;
  if (!run.op->takes_scale || run.problem.scale == 1 || !is_linear(run)) return v;
  for (const auto& names : {run.operands(), run.cotangents()})
    for (const std::string& name : names) {
      if (token_width(run.inputs().at(name)) == 0) continue;
      v.push_back(on_input(run, fmt::format("{} {}", name, what), name, [factor](const Tensor& t) {
        return mapped(t, [factor](double x, int64_t) { return factor * x; });
      }));
    }
  return v;
}

/// States and their cotangents times the scale, which multiplies only what is read with q.
std::vector<Variant> on_a_state(const FailingRun& run) {
  std::vector<Variant> v;
  if (!run.op->takes_scale || run.problem.scale == 1) return v;
  for (const auto& names : {run.states(), run.cotangents()})
    for (const std::string& name : names) {
      if (token_width(run.inputs().at(name)) > 0) continue;
      for (const double factor : {run.problem.scale, 1 / run.problem.scale})
        v.push_back(on_input(run,
                             fmt::format("{} is {} by the scale", name,
                                         factor == run.problem.scale ? "multiplied" : "divided"),
                             name, [factor](const Tensor& t) {
                               return mapped(t, [factor](double x, int64_t) { return factor * x; });
                             }));
    }
  return v;
}

/// Logits in the wrong base are logits times ln 2, or log2 e.
std::vector<Variant> of_another_base(const FailingRun& run) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  if (is_linear(run) || run.argument("s") == nullptr) return {};
  std::vector<Variant> v = with_scale(run, run.problem.scale * kLn2, "the softmax has 2^x for e^x");
  append(v, with_scale(run, run.problem.scale / kLn2, "the softmax has e^x of an exponent meant for base 2"));
  if (run.backward)
    v.push_back({"the softmax has 2^x for e^x, its gradient is that of e^x", [&run] {
                   const double scale = run.problem.scale * kLn2;
                   auto p =
                       evaluate_with(run, run.inputs(), [scale](Problem& problem) { problem.scale = scale; });
                   for (auto& [name, output] : p ? *p : Prediction{}) {
                     const bool of_logits = name == "dq" || name == "dk" || name == "dhk0";
                     const bool of_both =
                         name.starts_with("d") && !of_logits && name != "dv" && name != "dhv0";
                     PredictedOutput& out = p->at(name);
                     for (size_t i = 0; i < out.mid.size(); ++i) {
                       if (of_logits) out.mid[i] /= kLn2, out.bound[i] /= kLn2;
                       if (of_both) out.mid[i] = std::numeric_limits<double>::quiet_NaN();
                     }
                   }
                   return p;
                 }});
  return v;
}

std::vector<Variant> of_another_size(const FailingRun& run) {
  std::vector<Variant> v;
  const Sizes& s = run.problem.sizes;
  for (const char* axis : {"V", "M", "T", "H", "K"}) {
    const auto size = static_cast<double>(s.of(axis));
    append(v, with_scale(run, 1 / std::sqrt(size), fmt::format("the scale is {}^-1/2", axis)));
    append(v, with_scale(run, 1 / size, fmt::format("the scale is 1/{}", axis)));
  }
  for (const double size : {16., 32., 64., 128., 256.})
    append(v, with_scale(run, 1 / std::sqrt(size), fmt::format("the scale is {}^-1/2", size)));
  append(v, with_scale(run, std::sqrt(run.problem.scale), "the scale is its own root"));
  append(v, with_scale(run, 1 / run.problem.scale, "the scale divides"));
  return v;
}

}  // namespace

std::vector<Meaning> scale_meanings() {
  return {{"scale-missing", "the scale is not applied", "multiply by it once",
           [](const FailingRun& run) {
             std::vector<Variant> v = with_scale(run, 1, "the scale is 1");
             append(v, by_parts(run, 1 / run.problem.scale, "lacks the scale"));
             append(v, on_one_factor(run, 1 / run.problem.scale, "enters without the scale"));
             return v;
           }},
          {"scale-squared", "the scale is applied twice", "two factors both hold it",
           [](const FailingRun& run) {
             std::vector<Variant> v =
                 with_scale(run, run.problem.scale * run.problem.scale, "the scale is its own square");
             append(v, by_parts(run, run.problem.scale, "has the scale twice"));
             append(v, on_one_factor(run, run.problem.scale, "enters with the scale once more"));
             return v;
           }},
          {"scale-of-another-size", "the scale is made from another size", "check which size it is made from",
           of_another_size},
          {"scale-of-a-state", "a state or its gradient is multiplied by the scale",
           "only what is read with a query has it", on_a_state},
          {"softmax-base", "exp for exp2 in a softmax, or the reverse", "check where log2(e) is multiplied",
           of_another_base}};
}

}  // namespace assay
