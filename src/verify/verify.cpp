#include "src/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <thread>

#include "src/diagnosis/diagnose.h"
#include "src/diagnosis/element_slice.h"
#include "src/diagnosis/origin.h"
#include "src/diagnosis/origin_groups.h"
#include "src/diagnosis/source_line.h"
#include "src/numerics/bad_input.h"
#include "src/verify/acceptance.h"
#include "src/verify/verdict.h"
#include "src/vm/shadow_run.h"

namespace assay {
namespace {

Verification begin(const Case& c, const Kernel& kernel, const Backend& backend) {
  Verification v;
  v.kernel = kernel.name;
  v.case_ = c;
  v.token = token_of(c);
  v.replay = "assay replay " + v.token;
  v.backend = backend.name();
  v.arithmetic = kernel.arithmetic_text;
  return v;
}

/// Judges every output the plan writes, in the operator's order.
std::vector<OutputComparison> compare_outputs(const Outcome& outcome, const ReferenceResult& reference,
                                              const CheckReport* partial) {
  std::vector<OutputComparison> comparisons;
  for (const ReferenceOutput& expected : reference.outputs) {
    const auto got = outcome.outputs.find(expected.name);
    if (got == outcome.outputs.end()) continue;
    const std::vector<uint8_t>* judged = partial ? &partial->settled.at(expected.name) : nullptr;
    comparisons.push_back(compare_output(got->second, expected, judged));
  }
  return comparisons;
}

/// In the order of compare_outputs.
std::vector<ErrorStatistics> statistics_of(const Outcome& outcome, const ReferenceResult& reference) {
  std::vector<ErrorStatistics> statistics;
  for (const ReferenceOutput& expected : reference.outputs) {
    const auto got = outcome.outputs.find(expected.name);
    if (got != outcome.outputs.end()) statistics.push_back(error_statistics(got->second, expected));
  }
  return statistics;
}

/// What the errors of those outputs add up to that are log decays.
std::vector<AccumulatedDecay> accumulate(const Outcome& outcome, const ReferenceResult& reference, const Operator& op,
                                         const Case& c) {
  std::vector<AccumulatedDecay> sums;
  for (const ArgumentSpec& spec : op.outputs)
    for (const ReferenceOutput& expected : reference.outputs) {
      if (spec.role != Role::log_decay || expected.name != spec.name || !outcome.outputs.count(expected.name)) continue;
      if (auto sum = accumulated_decay(outcome.outputs.at(expected.name), expected, c.cu_seqlens))
        sums.push_back(*std::move(sum));
    }
  return sums;
}

/// Elements whose bits differ between two runs; each output with some adds a failure of `property`.
int64_t compare_runs(const Outcome& first, const Outcome& second, const std::string& property,
                     Verification& v) {
  if (first.trap || second.trap) {
    if (first.trap && second.trap) return 0;
    const Trap& trap = first.trap ? *first.trap : *second.trap;
    v.properties_failed.push_back(
        fmt::format("{}: only one of the two runs trapped: {}", property, trap.message));
    return 0;
  }
  int64_t total = 0;
  for (const auto& [name, tensor] : first.outputs) {
    const Tensor& other = second.outputs.at(name);
    int64_t at = -1;
    const int64_t differing = differing_elements(tensor, other, &at);
    if (differing == 0) continue;
    total += differing;
    const int digits = format(tensor.dtype).bytes * 2;
    v.properties_failed.push_back(fmt::format("{}: {} elements of {} differ, first {}: {:#0{}x} and {:#0{}x}",
                                              property, differing, name, tensor.element_name(at),
                                              tensor.bits(at), digits + 2, other.bits(at), digits + 2));
  }
  return total;
}

/// A finding for each input that the run changed.
void check_inputs(const TensorMap& inputs, const Outcome& outcome, Verification& v) {
  for (const auto& [name, now] : outcome.changed_inputs) {
    const Tensor& given = inputs.at(name);
    int64_t at = -1;
    const int64_t count = differing_elements(given, now, &at);
    if (count > 0)
      v.properties_failed.push_back(fmt::format("inputs-unchanged: {} was {:.9g} and is {:.9g} after the run; {} of {} elements changed",
                                                given.element_name(at), given.value(at), now.value(at), count, given.size()));
  }
}

/// The first element judged non-finite, in the operator's order of outputs.
std::optional<std::pair<std::string, int64_t>> nonfinite_element(const Verification& v) {
  for (const OutputComparison& output : v.outputs) {
    const auto at = std::find(output.verdicts.begin(), output.verdicts.end(), ElementVerdict::nonfinite);
    if (at != output.verdicts.end()) return std::pair{output.name, int64_t{at - output.verdicts.begin()}};
  }
  return std::nullopt;
}

/// Only Plan::blocks run. Values are judged where all tensors are held and the blocks that ran wrote them from
/// values of their own; everything else those blocks do wrong is found as ever. Nothing is traced.
void judge_some_blocks(const Case& c, const Kernel& kernel, const Operator& op, const Plan& plan,
                       const TensorMap& inputs, Backend& backend, const VerifyOptions& options,
                       Verification& v) {
  const Outcome outcome = backend.run(plan, inputs);
  v.trap = outcome.trap;
  v.exponents = outcome.exponents;
  v.branches = outcome.branches;
  v.lane_instructions = outcome.lane_instructions;
  v.seconds_kernel = outcome.seconds;
  check_exponents(kernel, v);
  vm::Checks checks = options.checks;
  checks.unwritten = true;  // also says which elements these blocks have written
  std::optional<Trap> trap;
  CheckReport report;
  if (!v.trap || v.trap->kind == "out-of-bounds" || v.trap->kind == "misaligned")
    report = vm::run_checked(plan, inputs, options.origin.machine, checks, &trap);
  bool held = true;
  for (const auto& [name, tensor] : inputs) held &= tensor.is_held();
  for (const auto& [name, tensor] : outcome.outputs) held &= tensor.is_held();
  v.partial = fmt::format("blocks {} of every launch ran", c.blocks);
  if (!outcome.trap && held && !trap) {
    const ReferenceResult reference = reference_of(c, kernel, op, inputs, options.threads);
    v.seconds_reference = reference.seconds;
    v.outputs = compare_outputs(outcome, reference, &report);
    for (const OutputComparison& output : v.outputs)
      *v.partial += fmt::format("; {} of {} elements of {} judged", output.elements,
                                outcome.outputs.at(output.name).size(), output.name);
  } else {
    *v.partial += "; no value is judged: tensors beyond 64 MiB are made on demand and have no reference";
  }
  if (options.twice) compare_runs(outcome, backend.run(plan, inputs), "same-bits-twice", v);
  if (!v.trap) v.trap = trap;
  if (options.checks.any()) v.checks = std::move(report);
}

/// The run once more under the checks, where it is small enough. A trap that only they raise is the run's.
void check_run(const Plan& plan, const TensorMap& inputs, const VerifyOptions& options, Verification& v) {
  const uint64_t instructions = v.lane_instructions;
  if (!options.checks.any()) return;
  if (v.trap && (v.trap->kind == "hang" || v.trap->kind == "launch")) {
    v.checks.emplace().skipped = v.trap->kind == "hang" ? "the run does not end" : "the launch is refused";
    return;
  }
  if (instructions > options.check_instructions) {
    v.checks.emplace().skipped = fmt::format(
        "the run has {:.0f} million lane-instructions, more than the {:.0f} million that are checked",
        static_cast<double>(instructions) * 1e-6, static_cast<double>(options.check_instructions) * 1e-6);
    return;
  }
  std::optional<Trap> trap;
  v.checks = vm::run_checked(plan, inputs, options.origin.machine, options.checks, &trap);
  if (!v.trap) v.trap = trap;
}

/// Throws BadInput where the plan does not write the output that the caller asks about.
void require_written(const Plan& plan, const VerifyOptions& options) {
  if (!options.element) return;
  std::string written;
  for (const PlanOutput& o : plan.outputs) {
    if (o.name == options.element->first) return;
    written += (written.empty() ? "" : ", ") + o.name;
  }
  throw BadInput(fmt::format("element of {}: this run does not write it; it writes {}",
                             options.element->first, written.empty() ? "nothing" : written));
}

/// The element furthest beyond its bound; none where all are within theirs.
std::optional<std::pair<std::string, int64_t>> violating_element(const Verification& v) {
  const OutputComparison* worst = nullptr;
  for (const OutputComparison& o : v.outputs)
    if (o.violation > 0 && o.worst.flat >= 0 && (!worst || o.worst.ratio > worst->worst.ratio)) worst = &o;
  if (!worst) return std::nullopt;
  return std::pair{worst->name, worst->worst.flat};
}

/// What stands behind the element that was asked for, or behind the worst violation.
void slice(const Plan& plan, const TensorMap& inputs, const VerifyOptions& options, Verification& v) {
  const auto element = options.element ? options.element : violating_element(v);
  if (element) v.slice = slice_element(plan, inputs, options.origin.machine, element->first, element->second);
}

/// Where the non-finite element was born, and the named causes that fit all the evidence.
void explain(const Plan& plan, const Operator& op, const TensorMap& inputs, const VerifyOptions& options,
             Verification& v) {
  auto element = options.element ? options.element : nonfinite_element(v);
  if (element && (options.all_origins || (options.first && !options.element))) {
    AllOrigins all = find_all_origins(plan, inputs, options.origin, options.all_origins);
    v.origins = std::move(all.groups);
    if (options.first && all.first) element = all.first;
  }
  std::optional<OriginTrace> trace;
  if (element) trace = find_origin(plan, inputs, element->first, element->second, options.origin);
  if (trace) v.origin = trace->origin;
  v.diagnosis = diagnose({&v.case_, &inputs, trace ? &*trace : nullptr, &v.outputs, &v.exponents, &op,
                          v.shadow ? &*v.shadow : nullptr});
}

}  // namespace

/// In an exact case no operation rounds, so the arithmetic declares no error but
/// the storing of dg, which may need more bits than its format has.
ReferenceResult reference_of(const Case& c, const Kernel& kernel, const Operator& op, const TensorMap& inputs,
                             int threads) {
  Problem problem;
  problem.sizes = sizes_of(c);
  problem.cu_seqlens = c.cu_seqlens;
  problem.scale = scale_of(c, op);
  problem.inputs = &inputs;
  problem.parameters = c.parameters;
  problem.threads =
      threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const bool exact = c.values == "exact";
  ReferenceResult result;
  if (runs_forward(c)) {
    if (!exact) problem.arithmetic = kernel.arithmetic(c);
    result = op.evaluate(problem);
  }
  if (runs_backward(c)) {
    const GatedAdjointArithmetic declared = kernel.adjoint_arithmetic(c);
    if (!exact)
      problem.adjoint = declared;
    else
      problem.adjoint.gate_output_roundoff = declared.gate_output_roundoff;
    ReferenceResult gradients = op.evaluate_adjoint(problem);
    result.seconds += gradients.seconds;
    std::move(gradients.outputs.begin(), gradients.outputs.end(), std::back_inserter(result.outputs));
  }
  return result;
}

Verification verify(const Case& c, const Kernel& kernel, Backend& backend, const VerifyOptions& options) {
  const Operator& op = find_operator(kernel.operator_name);
  require_accepted(c, kernel, op);
  require_memory(c, op);
  Verification v = begin(c, kernel, backend);

  const TensorMap drawn = options.inputs ? TensorMap{} : draw_inputs(c, op);
  const TensorMap& inputs = options.inputs ? *options.inputs : drawn;
  v.domain = domain_faults(inputs, kernel, op);
  if (!v.domain.empty()) {
    decide(v);
    return v;
  }

  const Plan plan = plan_of(c, kernel, op, inputs);
  require_written(plan, options);
  if (!c.blocks.empty()) {
    judge_some_blocks(c, kernel, op, plan, inputs, backend, options, v);
    decide(v);
    return v;
  }
  const Outcome outcome = backend.run(plan, inputs);
  v.trap = outcome.trap;
  v.exponents = outcome.exponents;
  v.branches = outcome.branches;
  v.lane_instructions = outcome.lane_instructions;
  v.seconds_kernel = outcome.seconds;
  check_exponents(kernel, v);

  check_inputs(inputs, outcome, v);

  if (!outcome.trap) {
    const ReferenceResult reference = reference_of(c, kernel, op, inputs, options.threads);
    v.seconds_reference = reference.seconds;
    v.outputs = compare_outputs(outcome, reference, nullptr);
    v.accumulated_decay = accumulate(outcome, reference, op, c);
    if (options.statistics) v.statistics = statistics_of(outcome, reference);
  }
  if (options.twice) compare_runs(outcome, backend.run(plan, inputs), "same-bits-twice", v);
  if (options.peer) {
    const Outcome on_peer = options.peer->run(plan, inputs);
    v.bits_differ = compare_runs(outcome, on_peer, "same-bits-on-peer", v);
    if (options.twice) compare_runs(on_peer, options.peer->run(plan, inputs), "same-bits-twice-on-peer", v);
  }
  if (!outcome.trap && options.shadow_instructions && v.lane_instructions <= options.shadow_instructions)
    v.shadow = vm::run_shadow(
        plan, inputs, options.origin.machine,
        {.element = options.element ? options.element : violating_element(v), .locate = location_of});
  check_run(plan, inputs, options, v);
  decide(v);
  if (options.slice && !outcome.trap) slice(plan, inputs, options, v);
  if (options.diagnose && (v.verdict == "finding" || options.element)) {
    explain(plan, op, inputs, options, v);
    decide(v);  // the cause now names the origin
    if (v.verdict == "finding" && !v.origin && !v.trap) v.entry = entry_of(plan);
  }
  return v;
}

}  // namespace assay
