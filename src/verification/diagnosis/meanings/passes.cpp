#include "src/verification/diagnosis/meanings/passes.h"

#include <fmt/format.h>

#include <cmath>

#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

/// Both scans of one sequence and head: S_t = e^{g_t} S_{t-1} + k_t v_t^T,
///   G_t = e^{g_{t+1}} G_{t+1} + scale q_t do_t^T,
/// and dg_t = e^{g_t} <S_{t-1}, G_t> over the channels that share the gate. Of hgrn: each channel
/// S_t = e^{g_t} S_{t-1} + x_t.
class Scans {
 public:
  Scans(const FailingRun& run, const std::string& gate) : run_(run), g_(run.inputs().at(gate)) {
    const auto has = [&](const char* name) { return run.inputs().count(name) > 0; };
    plain_ = has("x");
    if (!plain_ && !(has("q") && has("k") && has("v"))) return;
    channels_ = plain_ ? token_width(run.inputs().at("x")) : run.problem.sizes.K;
    values_ = plain_ ? 1 : run.problem.sizes.V;
    heads_ = plain_ ? 1 : run.problem.sizes.H;
    by_channel_ = token_width(g_) == heads_ * channels_;
    usable_ = by_channel_ || token_width(g_) == heads_;
  }
  bool usable() const { return usable_; }

  enum class Fault { none, stale, lost_state, lost_gradient };
  std::vector<double> gradient(Fault fault, int64_t C) const {
    std::vector<double> dg(static_cast<size_t>(g_.size()));
    int64_t n = 0;
    for (const auto& [first, length] : run_.spans()) {
      for (int64_t h = 0; h < heads_; ++h)
        for (int64_t c = 0; c < channels_; ++c)
          for (int64_t v = 0; v < values_; ++v) add(first, length, (n * heads_ + h), h, c, v, fault, C, dg);
      ++n;
    }
    return dg;
  }

 private:
  double decay(int64_t row, int64_t h, int64_t c) const { return std::exp(g_.value(gate_at(row, h, c))); }
  int64_t gate_at(int64_t row, int64_t h, int64_t c) const {
    return by_channel_ ? (row * heads_ + h) * channels_ + c : row * heads_ + h;
  }
  double element(const char* name, int64_t row, int64_t h, int64_t width, int64_t i) const {
    return run_.inputs().at(name).value((row * heads_ + h) * width + i);
  }
  double written(int64_t row, int64_t h, int64_t c, int64_t v) const {
    return plain_ ? element("x", row, h, channels_, c)
                  : element("k", row, h, channels_, c) * element("v", row, h, values_, v);
  }
  double arriving(int64_t row, int64_t h, int64_t c, int64_t v) const {
    if (plain_) return element("do", row, h, channels_, c);
    return run_.problem.scale * element("q", row, h, channels_, c) * element("do", row, h, values_, v);
  }
  double state(const char* name, int64_t place, int64_t c, int64_t v) const {
    const auto found = run_.inputs().find(name);
    return found == run_.inputs().end() ? 0 : found->second.value((place * channels_ + c) * values_ + v);
  }
  /// S before each token.
  std::vector<double> states(int64_t first, int64_t length, int64_t place, int64_t h, int64_t c, int64_t v,
                             Fault fault, int64_t C) const {
    std::vector<double> before(static_cast<size_t>(length));
    double S = state("initial_state", place, c, v), start = S, last = S;
    double run = S;  // as the states are made again, chunk by chunk
    for (int64_t t = 0; t < length; ++t) {
      if (t % C == 0) {
        last = t == 0 ? S : start, start = S;
        run = fault == Fault::stale ? last : fault == Fault::lost_state && t > 0 ? 0 : S;
      }
      before[static_cast<size_t>(t)] = run;
      const double e = decay(first + t, h, c), write = written(first + t, h, c, v);
      S = e * S + write, run = e * run + write;
    }
    return before;
  }
  void add(int64_t first, int64_t length, int64_t place, int64_t h, int64_t c, int64_t v, Fault fault,
           int64_t C, std::vector<double>& dg) const {
    const std::vector<double> before = states(first, length, place, h, c, v, fault, C);
    double G = state("dfinal_state", place, c, v);
    for (int64_t t = length - 1; t >= 0; --t) {
      if (fault == Fault::lost_gradient && t % C == C - 1 && t + 1 < length) G = 0;
      const double e = decay(first + t, h, c);
      G += arriving(first + t, h, c, v);
      dg[static_cast<size_t>(gate_at(first + t, h, c))] += e * before[static_cast<size_t>(t)] * G;
      G *= e;
    }
  }

  const FailingRun& run_;
  const Tensor& g_;
  bool plain_ = false, by_channel_ = false, usable_ = false;
  int64_t channels_ = 0, values_ = 0, heads_ = 0;
};

/// The reference but for dg: off by what the fault changes in the two scans.
std::optional<Prediction> with_fault(const FailingRun& run, Scans::Fault fault, int64_t C) {
  const std::string gate = run.gates().front();
  const Scans scans(run, gate);
  Prediction p = reference_prediction(run);
  const auto dg = p.find("d" + gate);
  if (!scans.usable() || dg == p.end()) return std::nullopt;
  const std::vector<double> right = scans.gradient(Scans::Fault::none, C), wrong = scans.gradient(fault, C);
  for (size_t i = 0; i < right.size(); ++i) dg->second.mid[i] += wrong[i] - right[i];
  return p;
}

std::vector<Variant> with_faults(const FailingRun& run, const char* text, Scans::Fault fault) {
  std::vector<Variant> v;
  if (!run.backward || run.gates().size() != 1 || run.sums_gate_gradient || !is_linear(run) ||
      reads_before_write(run))
    return v;
  for (const int64_t C : chunk_sizes(run))
    v.push_back({fmt::format(fmt::runtime(text), C), [&run, fault, C] { return with_fault(run, fault, C); }});
  return v;
}

}  // namespace

std::vector<Variant> gate_gradients_of_stale_states(const FailingRun& run) {
  return with_faults(run,
                     "dg in a chunk of {} is made of states that go on from the start of the chunk before",
                     Scans::Fault::stale);
}

std::vector<Variant> gate_gradients_of_lost_states(const FailingRun& run) {
  std::vector<Variant> v = with_faults(
      run, "dg in a chunk of {} is made of states that begin with zero there", Scans::Fault::lost_state);
  append(v, with_faults(run, "dg in a chunk of {} is made of gradients that end with zero there",
                        Scans::Fault::lost_gradient));
  return v;
}

}  // namespace assay
