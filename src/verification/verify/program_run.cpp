#include "src/verification/verify/program_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/vm/shadow_run.h"
#include "src/verification/compare/compare.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/run_comparison.h"

namespace assay {
namespace {

void note_outcome(const Outcome& outcome, Verification& v) {
  v.trap = outcome.trap;
  v.exponents = outcome.exponents;
  v.branches = outcome.branches;
  v.lane_instructions = outcome.lane_instructions;
  v.seconds_kernel = outcome.seconds;
}

/// A finding for each input that the run changed.
void check_inputs(const TensorMap& inputs, const Outcome& outcome, Verification& v) {
  for (const auto& [name, now] : outcome.changed_inputs) {
    const Tensor& given = inputs.at(name);
    int64_t at = -1;
    const int64_t count = differing_elements(given, now, &at);
    if (count > 0)
      v.properties_failed.push_back(fmt::format(
          "inputs-unchanged: {} was {:.9g} and is {:.9g} after the run; {} of {} elements changed",
          given.element_name(at), given.value(at), now.value(at), count, given.size()));
  }
}

/// GPU against machine; where their bits differ, the GPU against itself, more often than `twice` asks for.
EngineEvidence compare_with_peer(const Outcome& outcome, const Program& program, const TensorMap& inputs,
                                 const VerifyOptions& options, Verification& v) {
  constexpr int kRunsWhereBitsDiffer = 4;
  EngineEvidence e;
  const Outcome on_peer = options.peer->run(program, inputs);
  e.one_trapped = on_peer.trap.has_value() != outcome.trap.has_value();
  v.bits_differ = e.differing = compare_runs(outcome, on_peer, "same-bits-on-peer", v);
  const int runs = e.differing > 0 || e.one_trapped ? kRunsWhereBitsDiffer : options.twice ? 2 : 1;
  for (; e.peer_runs < runs && e.peer_differing == 0; ++e.peer_runs)
    e.peer_differing =
        compare_runs(on_peer, options.peer->run(program, inputs), "same-bits-twice-on-peer", v);
  return e;
}

/// The run once more under the checks, where it is small enough. A trap that only they raise is the run's.
void check_run(const Program& program, const TensorMap& inputs, const VerifyOptions& options,
               Verification& v) {
  const uint64_t instructions = v.lane_instructions;
  if (!options.checks.any() || program.modules.empty()) return;  // a test's engine may have no program
  if (v.trap && (v.trap->kind == TrapKind::hang || v.trap->kind == TrapKind::launch)) {
    v.checks.emplace().skipped =
        v.trap->kind == TrapKind::hang ? "the run does not end" : "the launch is refused";
    return;
  }
  if (instructions > options.check_instructions) {
    v.checks.emplace().skipped = fmt::format(
        "the run has {:.0f} million lane-instructions, more than the {:.0f} million that are checked",
        static_cast<double>(instructions) * 1e-6, static_cast<double>(options.check_instructions) * 1e-6);
    return;
  }
  std::optional<Trap> trap;
  v.checks = vm::run_checked(program, inputs, options.origin.machine, options.checks, &trap);
  if (!v.trap) v.trap = trap;
}

/// Only Program::blocks run. The checks also say which elements these blocks have written: what the others
/// would have is no fault, and is not judged.
ProgramRun run_some_blocks(const Program& program, const TensorMap& inputs, Backend& backend,
                           const VerifyOptions& options, Verification& v) {
  ProgramRun run{.outcome = backend.run(program, inputs)};
  note_outcome(run.outcome, v);
  v.partial = fmt::format("blocks {} of every launch ran", program.blocks);
  vm::Checks checks = options.checks;
  checks.unwritten = true;
  run.written.emplace();
  std::optional<Trap> trap;
  if (!v.trap || v.trap->kind == TrapKind::out_of_bounds || v.trap->kind == TrapKind::misaligned)
    run.written = vm::run_checked(program, inputs, options.origin.machine, checks, &trap);
  if (options.twice) compare_runs(run.outcome, backend.run(program, inputs), "same-bits-twice", v);
  if (!v.trap) v.trap = trap;
  if (options.checks.any()) v.checks = run.written;
  return run;
}

}  // namespace

ProgramRun run_program(const Program& program, const TensorMap& inputs, Backend& backend,
                       const VerifyOptions& options, Verification& v) {
  if (!program.blocks.empty()) return run_some_blocks(program, inputs, backend, options, v);
  ProgramRun run{.outcome = backend.run(program, inputs)};
  note_outcome(run.outcome, v);
  check_inputs(inputs, run.outcome, v);
  if (options.twice) compare_runs(run.outcome, backend.run(program, inputs), "same-bits-twice", v);
  if (options.peer) run.engines = compare_with_peer(run.outcome, program, inputs, options, v);
  check_run(program, inputs, options, v);
  return run;
}

void shadow_program(const Program& program, const TensorMap& inputs, const ProgramRun& run,
                    const VerifyOptions& options,
                    const std::optional<std::pair<std::string, int64_t>>& element, Verification& v) {
  const bool small = options.shadow_instructions && v.lane_instructions <= options.shadow_instructions;
  if (run.outcome.trap || !program.blocks.empty() || !small) return;
  v.shadow =
      vm::run_shadow(program, inputs, options.origin.machine, {.element = element, .locate = location_of});
}

void triage_program(const Program& program, const TensorMap& inputs, const ProgramRun& run,
                    const VerifyOptions& options, Verification& v) {
  if (!run.engines) return;
  EngineEvidence e = *run.engines;
  const auto races_of = [&](const CheckReport& report) {
    e.checked_races = std::find(report.ran.begin(), report.ran.end(), CheckName::races) != report.ran.end();
    for (const CheckFinding& f : report.findings)
      if (name_of(f.kind).ends_with("race") && !e.race) e.race = f;
  };
  if (v.checks) races_of(*v.checks);
  const bool differs = e.differing > 0 || e.one_trapped || e.peer_differing > 0;
  if (differs && !e.checked_races && v.lane_instructions > 0 &&
      v.lane_instructions <= options.check_instructions) {
    vm::Checks checks = vm::Checks::none();
    checks.races = true;
    std::optional<Trap> trap;
    CheckReport report = vm::run_checked(program, inputs, options.origin.machine, checks, &trap);
    races_of(report);
    if (e.race && !v.checks) v.checks = std::move(report);
  }
  for (const OutputComparison& o : v.outputs) e.outside |= o.violation + o.nonfinite + o.wrong_class > 0;
  e.outside |= v.trap.has_value();
  v.triage = triage_of(e);
}

}  // namespace assay
