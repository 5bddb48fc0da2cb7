#include "fuzz/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fuzz/bit_comparison.h"
#include "fuzz/handed_states.h"
#include "fuzz/slice.h"
#include "src/compare/compare.h"
#include "src/numerics/bad_input.h"
#include "src/verify/acceptance.h"
#include "src/verify/verdict.h"
#include "src/vm/checks/checks.h"

namespace assay {
namespace {

bool completed(const Verification& v) {
  return !v.trap && v.verdict != "domain";
}
bool packed(const Case& c) {
  return !c.cu_seqlens.empty();
}

const ArgumentSpec* optional_input(const Operator& op, Role role) {
  for (const ArgumentSpec& input : op.inputs)
    if (input.optional && input.role == role) return &input;
  return nullptr;
}

bool within_bound_applies(const Verification& v, const Kernel&, const Operator&) {
  return v.verdict != "domain";
}
Failure within_bound(PropertyRun& run) {
  for (const OutputComparison& output : run.verification.outputs)
    if (output.violation + output.nonfinite + output.wrong_class > 0)
      return fmt::format("{}: got {:.9g}, expected {:.9g}, error / bound {:.4g}", output.worst.element,
                         output.worst.got, output.worst.expected, output.worst.ratio);
  if (run.verification.trap) return trap_text(*run.verification.trap);
  return std::nullopt;
}

bool exponents_nonpositive_applies(const Verification& v, const Kernel& kernel, const Operator&) {
  return completed(v) && kernel.exponents_nonpositive && !v.exponents.empty();
}
Failure exponents_nonpositive(PropertyRun& run) {
  for (const ExponentRange& range : run.verification.exponents)
    if (range.max > 0 || range.nans > 0)
      return fmt::format("{} at {}:{} saw {:.9g} and {} NaN", range.instruction, range.where.file,
                         range.where.line, range.max, range.nans);
  return std::nullopt;
}

/// The pipeline has run the peer and noted what differs; nothing is run again.
bool same_bits_on_peer_applies(const Verification& v, const Kernel&, const Operator&) {
  return v.bits_differ >= 0;
}
Failure same_bits_on_peer(PropertyRun& run) {
  if (run.verification.bits_differ == 0) return std::nullopt;
  return fmt::format("{} elements differ", run.verification.bits_differ);
}

bool same_bits_twice_applies(const Verification& v, const Kernel&, const Operator&) {
  return completed(v);
}
Failure same_bits_twice(PropertyRun& run) {
  return same_outcome(run.outcome(), run.run(run.case_, run.inputs()));
}

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
  for (const ArgumentSpec& spec : run.op.gradients()) {
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

bool causality_applies(const Verification& v, const Kernel&, const Operator&) {
  return completed(v) && v.case_.T >= 2 && !packed(v.case_);
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
  const Outcome second = run.run(run.case_, changed);
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
  return completed(v) && !packed(v.case_) && v.case_.T > kernel.resume_granularity && kernel.arithmetic &&
         optional_input(op, Role::state) != nullptr && keeps_all_in_its_states(v.case_, op);
}

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
  for (Case* c : {&head, &tail}) c->direction = "forward", c->final_state_gradient = false;
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
  head.direction = tail.direction = "backward";
  head.final_state_gradient = true;
  before.direction = "forward", before.final_state_gradient = false;
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
  return completed(v) && (v.case_.cu_seqlens.size() > 2 || v.case_.B > 1);
}
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
Failure packed_equals_separate(PropertyRun& run) {
  return packed(run.case_) ? packed_sequences_run_alone(run) : batch_runs_packed(run);
}

/// The inputs of these cases differ in one role: absent in the first, zeros in the second.
Failure absent_against_zeros(PropertyRun& run, const Case& absent, const Case& zero, Role role) {
  TensorMap without = run.inputs(), with = run.inputs();
  std::string names;
  bool already = true;
  for (const ArgumentSpec& input : run.op.inputs) {
    if (!input.optional || input.role != role || !is_present(zero, input)) continue;
    const std::string name(input.name);
    std::vector<Axis> axes;
    for (std::string_view axis : input.axes)
      axes.push_back({std::string(axis), sizes_of(run.case_).of(axis)});
    already = already && run.inputs().count(name) == 0;
    without.erase(name);
    with[name] = Tensor(name, dtype_of(run.case_, input), axes);
    names += (names.empty() ? "" : ", ") + name;
  }
  const Outcome second = run.run(zero, with);
  if (Failure f = same_outcome(already ? run.outcome() : run.run(absent, without), second))
    return fmt::format("{} absent against zeros, {}", names, *f);
  return std::nullopt;
}

Case without_gate(Case c, const Operator& op) {
  const ArgumentSpec& gate = *optional_input(op, Role::log_decay);
  c.without.insert(std::string(gate.name));
  for (const ArgumentSpec& other : op.inputs)
    if (other.instead_of == gate.name) c.without.insert(std::string(other.name));
  return c;
}

/// Not where another gate stands in for it, nor where the kernel takes no absent gate or it means something
/// else.
bool absent_equals_zero_gate_applies(const Verification& v, const Kernel& kernel, const Operator& op) {
  const ArgumentSpec* gate = optional_input(op, Role::log_decay);
  if (gate != nullptr && kernel.refuses && !kernel.refuses(without_gate(v.case_, op)).empty()) return false;
  return completed(v) && gate != nullptr && op.absent_gate_is_zero &&
         std::none_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& other) {
           return other.instead_of == gate->name && is_present(v.case_, other);
         });
}
Failure absent_equals_zero_gate(PropertyRun& run) {
  Case zero = run.case_;
  zero.without.erase(std::string(optional_input(run.op, Role::log_decay)->name));
  return absent_against_zeros(run, without_gate(run.case_, run.op), zero, Role::log_decay);
}

bool absent_equals_zero_state_applies(const Verification& v, const Kernel&, const Operator& op) {
  return completed(v) && optional_input(op, Role::state) != nullptr;
}
Failure absent_equals_zero_state(PropertyRun& run) {
  return absent_against_zeros(run, with_state(run.case_, run.op, false), with_state(run.case_, run.op, true),
                              Role::state);
}

bool absent_equals_zero_cotangent_applies(const Verification& v, const Kernel&, const Operator& op) {
  const auto cotangents = op.cotangents();
  return completed(v) && runs_backward(v.case_) &&
         std::any_of(cotangents.begin(), cotangents.end(), [](const ArgumentSpec& s) { return s.optional; });
}
Failure absent_equals_zero_cotangent(PropertyRun& run) {
  Case absent = run.case_, zero = run.case_;
  absent.final_state_gradient = false, zero.final_state_gradient = true;
  TensorMap without = run.inputs(), with = run.inputs();
  for (const ArgumentSpec& spec : run.op.cotangents()) {
    if (!spec.optional) continue;
    const std::string name(spec.name);
    std::vector<Axis> axes;
    for (std::string_view axis : spec.axes) axes.push_back({std::string(axis), sizes_of(run.case_).of(axis)});
    without.erase(name);
    with[name] = Tensor(name, dtype_of(run.case_, spec), axes);
  }
  if (Failure f = same_outcome(run.run(absent, without), run.run(zero, with)))
    return "final-state gradient absent against one of zeros, " + *f;
  return std::nullopt;
}

bool heads_permute_applies(const Verification& v, const Kernel&, const Operator& op) {
  return completed(v) && !packed(v.case_) && (v.case_.B > 1 || (v.case_.H > 1 && !op.heads_differ));
}
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
Failure heads_permute(PropertyRun& run) {
  const Outcome second = run.run(run.case_, heads_and_batches_reversed(run.op, run.inputs()));
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
  return completed(v) && op.takes_scale && op.proportional_to_scale &&
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

/// Enough to see a fault, little enough for a test of a few seconds.
constexpr uint64_t kMostCheckedInstructions = 200'000'000;

bool checked_applies(const Verification& v, const Kernel&, const Operator&) {
  return completed(v) && v.lane_instructions <= kMostCheckedInstructions;
}
/// The first finding of one check of the machine.
Failure first_of(PropertyRun& run, std::string_view check) {
  for (const CheckFinding& finding : run.checks().findings)
    if (finding.check == check) return fmt::format("{}: {}", finding.kind, finding.message);
  return std::nullopt;
}

constexpr auto no_races_applies = checked_applies;
Failure no_races(PropertyRun& run) {
  return first_of(run, "races");
}
constexpr auto reads_written_values_applies = checked_applies;
Failure reads_written_values(PropertyRun& run) {
  return first_of(run, "unwritten");
}
constexpr auto stays_in_variables_applies = checked_applies;
Failure stays_in_variables(PropertyRun& run) {
  return first_of(run, "bounds");
}
constexpr auto no_index_wrap_applies = checked_applies;
Failure no_index_wrap(PropertyRun& run) {
  return first_of(run, "wrap");
}

}  // namespace

PropertyRun::PropertyRun(const Verification& v, const Kernel& k, Backend& backend, const TensorMap* inputs)
    : verification(v),
      case_(v.case_),
      kernel(k),
      op(find_operator(k.operator_name)),
      backend_(backend),
      given_(inputs) {}

const TensorMap& PropertyRun::inputs() {
  if (given_ != nullptr) return *given_;
  if (!inputs_) inputs_ = draw_inputs(case_, op);
  return *inputs_;
}

const Outcome& PropertyRun::outcome() {
  if (!outcome_) outcome_ = run(case_, inputs());
  return *outcome_;
}

Outcome PropertyRun::run(const Case& c, const TensorMap& inputs) const {
  return backend_.run(plan_of(c, kernel, op, inputs), inputs);
}

const CheckReport& PropertyRun::checks() {
  if (verification.checks && verification.checks->ran.size() == vm::check_rows().size())
    return *verification.checks;
  if (!checks_) {
    // The architecture only chooses bits of tensor cores.
    checks_ = vm::run_checked(plan_of(case_, kernel, op, inputs()), inputs(), {.threads = 1}, {});
  }
  return *checks_;
}

const std::vector<Property>& properties() {
  static const std::vector<Property> rows = {
#define PROPERTY(stem, name, share, summary) {name, share, summary, stem##_applies, stem},
#include "fuzz/properties.def"
#undef PROPERTY
  };
  return rows;
}

const Property& find_property(std::string_view name) {
  std::string known;
  for (const Property& property : properties()) {
    if (property.name == name) return property;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", property.name);
  }
  throw BadInput(fmt::format("unknown property '{}'; there are: {}", name, known));
}

std::vector<PropertyOutcome> check_properties(const Verification& v, const Kernel& kernel, Backend& backend,
                                              const std::vector<const Property*>& selected,
                                              const TensorMap* inputs) {
  std::vector<PropertyOutcome> outcomes;
  if (!v.case_.blocks.empty()) return outcomes;  // some blocks of a run compare with nothing
  PropertyRun run(v, kernel, backend, inputs);
  for (const Property* property : selected) {
    if (!property->applies(v, kernel, run.op)) continue;
    try {
      outcomes.push_back({property, property->check(run)});
    } catch (const BadInput&) {
      // The changed case is outside what the kernel accepts: nothing to compare.
    }
  }
  return outcomes;
}

void record_failures(Verification& v, const std::vector<PropertyOutcome>& outcomes) {
  for (const PropertyOutcome& outcome : outcomes) {
    if (!outcome.failure) continue;
    const std::string line = fmt::format("{}: {}", outcome.property->name, *outcome.failure);
    const auto same = [&](const std::string& known) {
      return known.rfind(std::string(outcome.property->name) + ":", 0) == 0;
    };
    if (std::none_of(v.properties_failed.begin(), v.properties_failed.end(), same))
      v.properties_failed.push_back(line);
  }
  if (!v.properties_failed.empty() && v.verdict != "domain") decide(v);
}

void judge_properties(Verification& v, const Kernel& kernel, Backend& backend, const TensorMap* inputs) {
  std::vector<const Property*> all;
  for (const Property& property : properties()) all.push_back(&property);
  record_failures(v, check_properties(v, kernel, backend, all, inputs));
}

}  // namespace assay
