#include "src/verification/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/result/finding_kind.h"
#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/element_slice.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/expected_outputs.h"
#include "src/verification/verify/explain.h"
#include "src/verification/verify/reference_run.h"
#include "src/verification/verify/run_comparison.h"
#include "src/verification/verify/triage.h"
#include "src/verification/verify/verdict.h"
#include "src/base/vm/shadow_run.h"
#include "src/verification/compare/accumulated_decay.h"
#include "src/verification/compare/compare.h"
#include "src/verification/compare/error_statistics.h"

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
    if (!partial) {
      comparisons.push_back(compare_output(got->second, expected));
      continue;
    }
    // Of an output that the checked blocks say nothing about, nothing is judged.
    const auto settled = partial->settled.find(expected.name);
    const std::vector<uint8_t> none(settled == partial->settled.end() ? expected.mid.size() : 0);
    comparisons.push_back(
        compare_output(got->second, expected, settled == partial->settled.end() ? &none : &settled->second));
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

/// What the inputs' file says that the outputs are, against the reference.
void judge_expected(const VerifyOptions& options, const ReferenceResult& reference, Verification& v) {
  if (options.expected) v.expected_outputs = compare_expected(*options.expected, reference);
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
    judge_expected(options, reference, v);
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

/// Whether other axes of the file's tensors make its outputs right.
void explain_expected(const Case& c, const Operator& op, const Problem& problem, const TensorMap& inputs,
                      const ReferenceResult& reference, const VerifyOptions& options, Verification& v) {
  if (v.expected_outputs.empty() || options.meaning_seconds <= 0) return;
  const auto evaluate = [&](const TensorMap& changed) {
    Problem other = problem;
    other.inputs = &changed;
    return evaluate_reference(c, op, other);
  };
  auto transposed = transposed_tensors(inputs, *options.expected, reference, evaluate, options.meaning_seconds);
  if (!transposed) return;
  v.diagnosis.push_back(*std::move(transposed));
  rank(v.diagnosis);
}

/// The run once more under the checks, where it is small enough. A trap that only they raise is the run's.
void check_run(const Plan& plan, const TensorMap& inputs, const VerifyOptions& options, Verification& v) {
  const uint64_t instructions = v.lane_instructions;
  if (!options.checks.any() || plan.modules.empty()) return;  // a test's engine may have no program
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

/// GPU against machine; where their bits differ, the GPU against itself, more often than `twice` asks for.
EngineEvidence compare_with_peer(const Outcome& outcome, const Plan& plan, const TensorMap& inputs,
                                 const VerifyOptions& options, Verification& v) {
  constexpr int kRunsWhereBitsDiffer = 4;
  EngineEvidence e;
  const Outcome on_peer = options.peer->run(plan, inputs);
  e.one_trapped = on_peer.trap.has_value() != outcome.trap.has_value();
  v.bits_differ = e.differing = compare_runs(outcome, on_peer, "same-bits-on-peer", v);
  const int runs = e.differing > 0 || e.one_trapped ? kRunsWhereBitsDiffer : options.twice ? 2 : 1;
  for (; e.peer_runs < runs && e.peer_differing == 0; ++e.peer_runs)
    e.peer_differing = compare_runs(on_peer, options.peer->run(plan, inputs), "same-bits-twice-on-peer", v);
  return e;
}

/// Whose fault it is. Where bits differ and nobody has looked for races, the machine does.
void triage(const Plan& plan, const TensorMap& inputs, const VerifyOptions& options, EngineEvidence e,
            Verification& v) {
  const auto races_of = [&](const CheckReport& report) {
    e.checked_races = std::find(report.ran.begin(), report.ran.end(), "races") != report.ran.end();
    for (const CheckFinding& f : report.findings)
      if (f.kind.ends_with("race") && !e.race) e.race = f;
  };
  if (v.checks) races_of(*v.checks);
  const bool differs = e.differing > 0 || e.one_trapped || e.peer_differing > 0;
  if (differs && !e.checked_races && v.lane_instructions > 0 &&
      v.lane_instructions <= options.check_instructions) {
    vm::Checks checks = vm::Checks::none();
    checks.races = true;
    std::optional<Trap> trap;
    CheckReport report = vm::run_checked(plan, inputs, options.origin.machine, checks, &trap);
    races_of(report);
    if (e.race && !v.checks) v.checks = std::move(report);
  }
  for (const OutputComparison& o : v.outputs) e.outside |= o.violation + o.nonfinite + o.wrong_class > 0;
  e.outside |= v.trap.has_value();
  v.triage = triage_of(e);
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

}  // namespace

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
    if (options.diagnose && v.verdict == "finding") explain_some_blocks(op, v);
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

  Problem problem;
  ReferenceResult reference;
  if (!outcome.trap) {
    problem = declared_problem(c, kernel, op, inputs, options.threads);
    reference = evaluate_reference(c, op, problem);
    v.seconds_reference = reference.seconds;
    v.outputs = compare_outputs(outcome, reference, nullptr);
    judge_expected(options, reference, v);
    v.accumulated_decay = accumulate(outcome, reference, op, c);
    if (options.statistics) v.statistics = statistics_of(outcome, reference);
  }
  if (options.twice) compare_runs(outcome, backend.run(plan, inputs), "same-bits-twice", v);
  std::optional<EngineEvidence> engines;
  if (options.peer) engines = compare_with_peer(outcome, plan, inputs, options, v);
  if (!outcome.trap && options.shadow_instructions && v.lane_instructions <= options.shadow_instructions)
    v.shadow = vm::run_shadow(
        plan, inputs, options.origin.machine,
        {.element = options.element ? options.element : violating_element(v), .locate = location_of});
  check_run(plan, inputs, options, v);
  if (engines) triage(plan, inputs, options, *engines, v);
  decide(v);
  if (options.slice && !outcome.trap) {
    const auto element = options.element ? options.element : violating_element(v);
    if (element) v.slice = slice_element(plan, inputs, options.origin.machine, element->first, element->second);
  }
  const bool only_expected = v.cause.starts_with(kExpectedFault);  // nothing of the kernel's
  if (options.diagnose && ((v.verdict == "finding" && !only_expected) || options.element)) {
    explain({kernel, backend, plan, op, problem, inputs, outcome, reference}, options, v);
    decide(v);  // the cause now names the origin
    const bool placed = v.trap || (v.origin && !v.origin->where.file.empty());
    if (v.verdict == "finding" && !only_expected && !placed) v.entry = entry_of(plan);
  }
  if (options.diagnose) explain_expected(c, op, problem, inputs, reference, options, v);
  return v;
}

}  // namespace assay
