// Properties across heads, batch entries, scales and layouts in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "fuzz/bit_comparison.h"
#include "fuzz/handed_states.h"
#include "fuzz/property_functions.h"
#include "fuzz/slice.h"
#include "src/verification/compare/compare.h"

namespace assay {

namespace {

/// One sequence and, where heads go apart, one head of H with all that share it: [begin, end) by axis.
class Neighbourhood {
 public:
  Neighbourhood(const Case& c, const Operator& op) {
    const Sizes sizes = sizes_of(c);
    const auto n = static_cast<int64_t>(c.seed / 16 % static_cast<uint64_t>(sizes.N));
    kept_["B"] = kept_["N"] = {n, n + 1};
    if (packed(c)) {
      kept_.erase("B");
      kept_["T"] = {c.cu_seqlens[static_cast<size_t>(n)], c.cu_seqlens[static_cast<size_t>(n) + 1]};
    }
    if (!heads_go_apart(op)) return;
    const auto h = static_cast<int64_t>(c.seed % static_cast<uint64_t>(sizes.H));
    const int64_t sharing = sizes.HV / sizes.H;
    kept_["H"] = {h, h + 1};
    kept_["HV"] = kept_["HQ"] = {h * sharing, (h + 1) * sharing};
  }

  static bool heads_go_apart(const Operator& op) {
    return std::all_of(op.outputs.begin(), op.outputs.end(), [](const ArgumentSpec& output) {
      return std::any_of(output.axes.begin(), output.axes.end(),
                         [](std::string_view axis) { return axis == "H" || axis == "HV" || axis == "HQ"; });
    });
  }

  Tensor part(const Tensor& tensor) const {
    Tensor part = tensor;
    for (const auto& [axis, range] : kept_) part = slice(part, axis, range.first, range.second);
    return part;
  }
  /// The tensor with NaN everywhere else.
  Tensor amid_nan(const Tensor& tensor) const {
    Tensor part = this->part(tensor);
    for (const auto& [axis, range] : kept_) {
      const int position = axis_position(tensor, axis);
      if (position < 0) continue;
      auto axes = part.axes;
      axes[static_cast<size_t>(position)].size = tensor.axes[static_cast<size_t>(position)].size;
      Tensor nans(tensor.name, tensor.dtype, axes);
      std::fill(nans.data.begin(), nans.data.end(), std::byte{0xff});
      part = concatenate(slice(nans, axis, 0, range.first), part, axis);
      part = concatenate(part, slice(nans, axis, range.second, nans.axes[static_cast<size_t>(position)].size),
                         axis);
    }
    return part;
  }

 private:
  std::map<std::string, std::pair<int64_t, int64_t>> kept_;
};

}  // namespace

bool neighbours_poisoned_applies(const Verification& v, const Kernel&, const Operator& op) {
  const Sizes sizes = sizes_of(v.case_);
  return was_run(v) && (sizes.N > 1 || (sizes.H > 1 && Neighbourhood::heads_go_apart(op)));
}
Failure neighbours_poisoned(PropertyRun& run) {
  const Neighbourhood kept(run.case_, run.op);
  TensorMap poisoned = run.inputs();
  for (auto& [name, tensor] : poisoned)
    if (name != "cu_seqlens") tensor = kept.amid_nan(tensor);
  const Outcome second = run.run(poisoned);
  if (run.outcome().trap || second.trap) return same_outcome(run.outcome(), second);
  for (const auto& [name, output] : unshared(run.outcome().outputs))
    if (Failure f = same_bits(kept.part(output), kept.part(second.outputs.at(name))))
      return fmt::format("NaN in all other sequences and heads, {} (counted within its own)", *f);
  return std::nullopt;
}

bool heads_permute_applies(const Verification& v, const Kernel&, const Operator& op) {
  return was_run(v) && !packed(v.case_) && (v.case_.B > 1 || (v.case_.H > 1 && !op.heads_differ));
}

namespace {

/// Heads stay where they are if their number enters the operator.
TensorMap heads_and_batches_reversed(const Operator& op, const TensorMap& tensors) {
  TensorMap result = tensors;
  for (auto& [name, tensor] : result) {
    for (const char* axis : {"B", "N"}) tensor = reversed(tensor, axis);
    if (op.heads_differ) continue;
    for (const char* axis : {"H", "HV", "HQ"}) tensor = reversed(tensor, axis);
  }
  return result;
}

}  // namespace

Failure heads_permute(PropertyRun& run) {
  const Outcome second = run.run(heads_and_batches_reversed(run.op, run.inputs()));
  if (run.outcome().trap || second.trap) return same_outcome(run.outcome(), second);
  const TensorMap& whole = run.outcome().outputs;
  return same_bits(run.case_.B > 1 ? unshared(whole) : whole,
                   heads_and_batches_reversed(run.op, second.outputs));
}

/// A power of two passes through only if nothing under- or overflows: not for decays that vanish, and not
/// where an output is near either end of its format (both runs must lie 2^20 inside it).
bool power_of_two_scale_applies(const Verification& v, const Kernel&, const Operator& op) {
  static constexpr std::string_view kGentle[] = {"none", "mild", "logsigmoid", "near-one"};
  const std::string profile = v.case_.decay.substr(0, v.case_.decay.find(':'));
  return was_run(v) && op.takes_scale && op.proportional_to_scale &&
         std::find(std::begin(kGentle), std::end(kGentle), profile) != std::end(kGentle);
}

Failure power_of_two_scale(PropertyRun& run) {
  Case doubled = run.case_;
  doubled.scale = 2 * scale_of(run.case_, run.op);
  // dL/dS_T is no multiple of the scale: it is doubled too, and then every gradient is.
  TensorMap inputs = run.inputs();
  for (auto& [name, tensor] : inputs)
    if (name.rfind("dfinal_", 0) == 0)
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 2 * tensor.value(i));
  const Outcome second = run.run(doubled, inputs);
  if (run.outcome().trap || second.trap) return same_outcome(run.outcome(), second);
  for (const auto& [name, output] : run.outcome().outputs) {
    const Tensor& other = second.outputs.at(name);
    const Format& f = format(output.dtype);
    const double smallest = std::ldexp(1.0, std::min(f.min_exponent + 20, -4));
    const double factor = name.rfind("final_", 0) == 0 ? 1 : 2;
    for (int64_t i = 0; i < output.size(); ++i) {
      const double x = output.value(i), y = other.value(i);
      if (!(std::fabs(x) > smallest) || !(std::fabs(y) < max_finite(output.dtype) / 2)) continue;
      if (y != factor * x)
        return fmt::format("scale doubled, {}: {:.9g} against {} x {:.9g}", output.element_name(i), y, factor,
                           x);
    }
  }
  return std::nullopt;
}

bool strided_equals_dense_applies(const Verification& v, const Kernel&, const Operator&) {
  return was_run(v) && !v.case_.layout.empty();
}
Failure strided_equals_dense(PropertyRun& run) {
  Case dense = run.case_;
  dense.layout.clear();
  return same_outcome(run.outcome(), run.run(dense, run.inputs()));
}

}  // namespace assay
