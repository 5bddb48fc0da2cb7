// What a state cannot do: grow, where no more of it is replaced than is there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fuzz/property_functions.h"
#include "fuzz/slice.h"

namespace assay {

namespace {

/// So many tokens that a state which grows by a fifth every 16 of them leaves fp32; few enough for a state
/// that loses a rounding at each to be where it should.
constexpr int64_t kManyTokens = 8192, kFirstTokens = 64, kFewChannels = 16;

/// The case's formats, hardly a decay, few heads and channels where the kernel takes those.
Case repeating(const Case& of, const Kernel& kernel, const Operator& op) {
  Case c = of;
  c.B = 1, c.T = kManyTokens;
  c.HV = of.HV > 0 ? of.HV / of.H * 2 : 0, c.H = 2;
  const bool gated = std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& input) {
    return input.role == Role::log_decay && is_present(of, input);
  });
  c.values = "repeated", c.decay = gated ? "near-one" : "none";
  c.direction = Direction::forward, c.final_state_gradient = false;
  c.cu_seqlens.clear(), c.overrides.clear(), c.layout.clear();
  Case small = c;
  small.K = std::min(c.K, kFewChannels), small.V = std::min(c.V, kFewChannels);
  const bool taken = !kernel.refuses || kernel.refuses(resolve_unchecked(small, op)).empty();
  return taken ? small : c;
}

/// Of all tokens the first one's.
Tensor held_at_first(const Tensor& tensor) {
  Tensor held = slice(tensor, "T", 0, 1);
  while (held.axes[static_cast<size_t>(axis_position(held, "T"))].size < kManyTokens)
    held = concatenate(held, held, "T");
  return held;
}

/// Is it what a rule reads its state with, writes for that, or its rate?
bool is_of_the_transition(const ArgumentSpec& input) {
  return input.role != Role::value && input.role != Role::positive && input.role != Role::log_decay &&
         std::find(input.axes.begin(), input.axes.end(), "T") != input.axes.end();
}

/// Keys and rates of the first token at all tokens, no rate above 1: what is replaced is what is there.
TensorMap repeated_inputs(const Case& c, const Operator& op) {
  TensorMap inputs = draw_inputs(c, op);
  for (const ArgumentSpec& input : op.inputs) {
    const auto found = inputs.find(std::string(input.name));
    if (!is_of_the_transition(input) || found == inputs.end()) continue;
    Tensor& tensor = found->second = held_at_first(found->second);
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (input.role == Role::rate && tensor.value(i) > 1) tensor.set(i, 1);
  }
  return inputs;
}

/// The first element in the order of tokens that is not finite; where there are no tokens, the first.
std::optional<int64_t> first_not_finite(const Tensor& tensor) {
  const int axis = axis_position(tensor, "T");
  std::optional<int64_t> first;
  const auto token = [&](int64_t i) { return axis < 0 ? 0 : tensor.index(i)[static_cast<size_t>(axis)]; };
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (!std::isfinite(tensor.value(i)) && (!first || token(i) < token(*first))) first = i;
  return first;
}

}  // namespace

bool repeats_stay_finite_applies(const Verification& v, const Kernel& kernel, const Operator& op) {
  return was_run(v) && kernel.arithmetic && removes_from_state(op) && v.case_.T > 0;
}

/// One key at all tokens: of a state S only y = S^T k counts, which becomes (1 - beta) y + beta v, between
/// the largest values and the initial state's. What is told to explanations is a run of its first tokens:
/// there the errors begin from which a state grows.
Failure repeats_stay_finite(PropertyRun& run) {
  const Case c = repeating(run.case_, run.kernel, run.op);
  const TensorMap inputs = repeated_inputs(c, run.op);
  const Outcome outcome = run.run(c, inputs);
  if (outcome.trap) return trap_text(*outcome.trap);
  const Tensor* bad = nullptr;  // one with tokens says when
  for (const auto& [name, output] : outcome.outputs)
    if (first_not_finite(output) && (!bad || axis_position(output, "T") >= 0)) bad = &output;
  if (!bad) return std::nullopt;
  run.derived();
  Case head = c;
  head.T = kFirstTokens;
  run.run(head, slice_all(inputs, "T", 0, kFirstTokens));
  const int64_t at = *first_not_finite(*bad);
  return fmt::format("{} tokens with the same key, of which no more is replaced than is there: {} = {}",
                     kManyTokens, bad->element_name(at), bad->value(at));
}

}  // namespace assay
