// Properties along time: what runs, cut or packed at other places, have in common.
#include <fmt/format.h>

#include <algorithm>

#include "fuzz/bit_comparison.h"
#include "fuzz/handed_states.h"
#include "fuzz/property_functions.h"
#include "fuzz/slice.h"

namespace assay {

namespace {

Tensor zeroed_from(const Tensor& tensor, int64_t t0) {
  const int64_t T = tensor.axes[static_cast<size_t>(axis_position(tensor, "T"))].size;
  const Tensor zeros(tensor.name, tensor.dtype, tensor.axes);
  return concatenate(slice(tensor, "T", 0, t0), slice(zeros, "T", t0, T), "T");
}

/// Tokens from t0 on that no cotangent reaches have no gradient: do = 0 there, and no final-state gradient.
Failure unreached_tokens_have_no_gradient(PropertyRun& run, int64_t t0) {
  Case c = run.case_;
  c.final_state_gradient = false;
  TensorMap inputs = run.inputs();
  for (const ArgumentSpec& spec : run.op.cotangents()) {
    const std::string name(spec.name);
    if (spec.role == Role::state)
      inputs.erase(name);
    else
      inputs.at(name) = zeroed_from(inputs.at(name), t0);
  }
  const Outcome outcome = run.run(c, inputs);
  if (outcome.trap) return trap_text(*outcome.trap);
  const bool of_sums =
      run.kernel.adjoint_arithmetic(run.resolved).gate_sums > 0;  // which leave roundings there
  for (const ArgumentSpec& spec : run.op.gradients()) {
    if (of_sums && spec.role == Role::log_decay) continue;
    const auto found = outcome.outputs.find(std::string(spec.name));
    if (found == outcome.outputs.end() || axis_position(found->second, "T") < 0) continue;
    const Tensor late = slice(found->second, "T", t0, run.case_.T);
    for (int64_t i = 0; i < late.size(); ++i)
      if (late.value(i) != 0)
        return fmt::format("do = 0 from t = {} on, {} tokens later {} = {:.9g}", t0,
                           late.index(i)[static_cast<size_t>(axis_position(late, "T"))], spec.name,
                           late.value(i));
  }
  return std::nullopt;
}

/// Outputs before a token depend on nothing from it on; nor does the gradient of a query, which reaches its
/// own output only.
bool is_causal(const Operator& op, const std::string& output) {
  const auto same = [&](const ArgumentSpec& spec) { return spec.name == output; };
  return output == "dq" || output == "dr" || std::any_of(op.outputs.begin(), op.outputs.end(), same);
}

}  // namespace

bool causality_applies(const Verification& v, const Kernel&, const Operator&) {
  return was_run(v) && v.case_.T >= 2 && !packed(v.case_);
}

/// The tokens from t0 on are replaced by another draw of the same case, its values reversed in time.
Failure causality(PropertyRun& run) {
  const int64_t T = run.case_.T, t0 = 1 + static_cast<int64_t>(run.case_.seed % static_cast<uint64_t>(T - 1));
  Case other = run.case_;
  other.seed += 1;
  other.overrides.clear();
  TensorMap changed = run.inputs();
  for (const auto& [name, replacement] : draw_inputs(other, run.op)) {
    Tensor& tensor = changed.at(name);
    if (axis_position(tensor, "T") < 0) continue;
    tensor = concatenate(slice(tensor, "T", 0, t0), slice(reversed(replacement, "T"), "T", t0, T), "T");
  }
  const Outcome second = run.run(changed);
  if (run.outcome().trap || second.trap) return same_outcome(run.outcome(), second);
  for (const auto& [name, output] : run.outcome().outputs) {
    if (axis_position(output, "T") < 0 || !is_causal(run.op, name)) continue;
    if (Failure f = same_bits(slice(output, "T", 0, t0), slice(second.outputs.at(name), "T", 0, t0)))
      return fmt::format("tokens from t = {} changed, {}", t0, *f);
  }
  return runs_backward(run.case_) ? unreached_tokens_have_no_gradient(run, t0) : std::nullopt;
}

/// Decays that follow from all tokens so far, as an absent gate may say, are in no state.
bool keeps_all_in_its_states(const Case& c, const Operator& op) {
  const ArgumentSpec* gate = optional_input(op, Role::log_decay);
  return op.absent_gate_is_zero || gate == nullptr || is_present(c, *gate);
}

bool split_and_resume_applies(const Verification& v, const Kernel& kernel, const Operator& op) {
  return was_run(v) && !packed(v.case_) && v.case_.T > kernel.resume_granularity && kernel.arithmetic &&
         optional_input(op, Role::state) != nullptr && keeps_all_in_its_states(v.case_, op);
}

namespace {

/// Of the outputs, those that stand in the other map too.
TensorMap shared_with(const TensorMap& outputs, const TensorMap& others) {
  TensorMap shared;
  for (const auto& [name, tensor] : outputs)
    if (others.contains(name)) shared.emplace(name, tensor);
  return shared;
}

Failure forward_resumes(PropertyRun& run, int64_t m) {
  const int64_t T = run.case_.T;
  Case head = run.case_, tail = with_state(run.case_, run.op, true);
  head.T = m;
  tail.T = T - m;
  for (Case* c : {&head, &tail}) c->direction = Direction::forward, c->final_state_gradient = false;
  const Outcome first = run.run(head, slice_all(run.inputs(), "T", 0, m));
  if (first.trap) return trap_text(*first.trap);
  TensorMap resumed = slice_all(run.inputs(), "T", m, T);
  for (auto& [name, state] : states_as_inputs(run.op, first.outputs)) resumed[name] = state;
  const Outcome second = run.run(tail, resumed);
  if (second.trap) return trap_text(*second.trap);
  TensorMap joined = second.outputs;
  for (auto& [name, tensor] : joined)
    if (axis_position(tensor, "T") >= 0) tensor = concatenate(first.outputs.at(name), tensor, "T");
  return same_bits(shared_with(run.outcome().outputs, joined), joined);
}

/// The second part's gradient of its initial state is the first part's of its final state.
Failure backward_resumes(PropertyRun& run, int64_t m) {
  const int64_t T = run.case_.T;
  Case head = run.case_, tail = with_state(run.case_, run.op, true), before = run.case_;
  head.T = before.T = m;
  tail.T = T - m;
  head.direction = tail.direction = Direction::backward;
  head.final_state_gradient = true;
  before.direction = Direction::forward, before.final_state_gradient = false;
  const TensorMap first_inputs = slice_all(run.inputs(), "T", 0, m);
  const Outcome reached = run.run(before, first_inputs);
  if (reached.trap) return trap_text(*reached.trap);
  TensorMap second_inputs = slice_all(run.inputs(), "T", m, T);
  for (auto& [name, state] : states_as_inputs(run.op, reached.outputs)) second_inputs[name] = state;
  const Outcome second = run.run(tail, second_inputs);
  if (second.trap) return trap_text(*second.trap);
  TensorMap resumed = first_inputs;
  for (auto& [name, cotangent] : gradients_as_cotangents(run.op, second.outputs)) resumed[name] = cotangent;
  const Outcome first = run.run(head, resumed);
  if (first.trap) return trap_text(*first.trap);
  TensorMap joined = unshared(first.outputs);
  for (auto& [name, tensor] : joined)
    if (axis_position(tensor, "T") >= 0) tensor = concatenate(tensor, second.outputs.at(name), "T");
  return same_bits(shared_with(run.outcome().outputs, joined), joined);
}

}  // namespace

Failure split_and_resume(PropertyRun& run) {
  const int64_t T = run.case_.T, step = run.kernel.resume_granularity, places = (T - 1) / step;
  const int64_t m = step * (1 + static_cast<int64_t>(run.case_.seed % static_cast<uint64_t>(places)));
  if (run.outcome().trap) return trap_text(*run.outcome().trap);
  Failure failure;
  if (runs_forward(run.case_)) failure = forward_resumes(run, m);
  if (!failure && runs_backward(run.case_)) failure = backward_resumes(run, m);
  if (failure) return fmt::format("split at t = {}, {}", m, *failure);
  return std::nullopt;
}

bool packed_equals_separate_applies(const Verification& v, const Kernel&, const Operator&) {
  return was_run(v) && (v.case_.cu_seqlens.size() > 2 || v.case_.B > 1);
}

namespace {

Failure packed_sequences_run_alone(PropertyRun& run) {
  const auto& cu = run.case_.cu_seqlens;
  for (size_t n = 0; n + 1 < cu.size(); ++n) {
    Case alone = run.case_;
    alone.cu_seqlens.clear();
    alone.T = cu[n + 1] - cu[n];
    const auto at = static_cast<int64_t>(n);
    const auto part = [&](const TensorMap& tensors) {
      return slice_all(slice_all(tensors, "T", cu[n], cu[n + 1]), "N", at, at + 1);
    };
    TensorMap inputs = part(run.inputs());
    inputs.erase("cu_seqlens");
    const Outcome second = run.run(alone, inputs);
    if (run.outcome().trap || second.trap) return same_outcome(run.outcome(), second);
    if (Failure f = same_bits(unshared(part(run.outcome().outputs)), second.outputs))
      return fmt::format("sequence {} of {} alone, {}", n, cu.size() - 1, *f);
  }
  return std::nullopt;
}

/// [B,T,...] in memory is [1,B*T,...]: only the names of the axes change.
TensorMap batch_flattened(const TensorMap& tensors) {
  TensorMap flat = tensors;
  for (auto& [name, tensor] : flat) {
    const int b = axis_position(tensor, "B"), t = axis_position(tensor, "T");
    if (b < 0 || t < 0) continue;
    tensor.axes[t].size *= tensor.axes[b].size;
    tensor.axes[b].size = 1;
  }
  return flat;
}

Failure batch_runs_packed(PropertyRun& run) {
  Case as_packed = run.case_;
  as_packed.B = 1;
  as_packed.T = run.case_.B * run.case_.T;
  for (int64_t n = 0; n <= run.case_.B; ++n) as_packed.cu_seqlens.push_back(n * run.case_.T);
  const Outcome second = run.run(as_packed, batch_flattened(run.inputs()));
  if (run.outcome().trap || second.trap) return same_outcome(run.outcome(), second);
  if (Failure f = same_bits(batch_flattened(run.outcome().outputs), second.outputs))
    return "batch as packed sequences, " + *f;
  return std::nullopt;
}

}  // namespace

Failure packed_equals_separate(PropertyRun& run) {
  return packed(run.case_) ? packed_sequences_run_alone(run) : batch_runs_packed(run);
}

}  // namespace assay
