// Cases whose indices pass 2^31, of which a few blocks run.
#include <algorithm>
#include <cmath>

#include "fuzz/choice.h"
#include "fuzz/dimensions.h"
#include "fuzz/settle.h"

namespace assay {
namespace {

/// Rows of a tensor that has one for each batch entry, token and head, times its channels: the widest that
/// this operator has.
int64_t elements_per_entry(const Case& c, const Operator& op) {
  const Sizes sizes = sizes_of(c);
  int64_t most = 1;
  for (const ArgumentSpec& input : op.inputs) {
    const bool by_entry = std::find(input.axes.begin(), input.axes.end(), "B") != input.axes.end();
    int64_t elements = by_entry ? 1 : 0;
    for (const std::string_view axis : input.axes)
      if (axis != "B") elements *= sizes.of(axis);
    most = std::max(most, elements);
  }
  return most;
}

/// Plans list their sequences: more of them would cost more than what runs.
constexpr int64_t kMostFarEntries = 400'000;

/// One batch entry is large by itself: through its heads, or its channels where it has no heads.
void widen(Case& c, const Target& target) {
  const auto& axes = target.op.outputs.front().axes;
  if (std::find(axes.begin(), axes.end(), "H") != axes.end()) {
    c.T = 520;
    c.HV = c.HV / c.H * 33'000;
    c.H = 33'000;
  } else if (target.kernel.limits.max_V >= 1 << 20) {
    c.T = 2100;
    c.V = 1 << 20;
  }
}

Case far_case(const Target& target) {
  Case c = fresh(target);
  c.kernel = target.kernel.name, c.rates = largest_rate(target.kernel);
  c.cu_seqlens.clear();
  c.overrides.clear();
  c.layout.clear();
  c.B = 1;
  c.T = pick<int64_t>({{3, 65}, {2, 80}, {2, 130}});
  c.K = uses_axis(target.op, "K")
            ? std::min<int64_t>(pick<int64_t>({{1, 64}, {3, 128}, {1, 100}}), target.kernel.limits.max_K)
            : 1;
  c.V = uses_axis(target.op, "V")
            ? std::min<int64_t>(pick<int64_t>({{1, 64}, {3, 128}, {1, 100}}), target.kernel.limits.max_V)
            : 1;
  // Writes per token are steps of the recurrence.
  if (c.M > 0) c.M = std::min(has_slots(target.op) ? 16 : usual_slots(target.op), target.kernel.limits.max_M);
  if (c.values == "exact") c.values = "normal";
  if (!target.op.takes_scale) c.scale.reset();
  const KernelLimits& limits = target.kernel.limits;
  c.decay = takes_all_decays(limits) ? pick<std::string>({{1, "mild"}, {1, "strong"}})
                                     : decay_within(limits, c.gate_dtype);
  // A gradient of what sequences share sums over all of them: one block of it has no end.
  const auto shared = [](const ArgumentSpec& output) {
    return std::none_of(output.axes.begin(), output.axes.end(),
                        [](std::string_view axis) { return axis == "B" || axis == "N"; });
  };
  const std::vector<ArgumentSpec> outputs = outputs_of(c, target.op);
  if (std::any_of(outputs.begin(), outputs.end(), shared)) {
    c.direction = Direction::forward;
    c.final_state_gradient = false;
  }
  // Elements of 2 and 4 bytes: the index passes 2^31, or 2^32, or only the byte offset does.
  const double elements = std::ldexp(1.05, static_cast<int>(pick<int64_t>({{4, 31}, {2, 32}, {1, 30}})));
  const auto entries = [&] {
    return static_cast<int64_t>(elements / double(elements_per_entry(c, target.op))) + 1;
  };
  if (chance(40)) widen(c, target);
  c.B = std::min(kMostFarEntries, entries());
  c.blocks = pick<std::string>({{3, "last-1..last"}, {1, "0,last"}, {1, "last-3..last-2,last"}});
  return c;
}

}  // namespace

Case draw_far_case(const Kernel& kernel, const Operator& op, uint64_t seed, uint64_t index) {
  const Feedback nothing;
  return first_accepted([&] { return far_case({kernel, op, nothing}); }, kernel, ~seed, index);
}

}  // namespace assay
