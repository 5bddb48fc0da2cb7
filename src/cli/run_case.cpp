#include "src/cli/run_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "kernels/mutant.h"
#include "kernels/views/gather_plan.h"
#include "reports/console.h"
#include "reports/print_verification.h"
#include "src/base/program/source_root.h"
#include "src/cli/commands.h"
#include "src/cli/first_failure.h"
#include "src/cli/missing_lines.h"
#include "src/verification/verify/acceptance.h"

namespace assay::cli {
namespace {

/// Inputs from a file have no token: the file is part of what is repeated.
std::string replay_with_file(const KernelOptions& options, const CaseToRun& run) {
  std::string line = "assay verify";
  if (!options.foreign()) line += fmt::format(" {}", run.case_.kernel);
  line += options.replay_suffix() + run.given;
  return line;
}

/// Of a mutant whose module the case does not launch the kernel as it is would be judged.
void require_launched(const Kernel& mutant, const CaseToRun& run) {
  const ResolvedCase c = accepted(run.case_, mutant);
  assay::require_launched(mutant.name,
                          program_with_views(mutant, c, run.inputs ? *run.inputs : draw_inputs(c)));
}

}  // namespace

Verification run_case(KernelOptions& options, const CaseToRun& run, const Engines& engines,
                      VerifyOptions verify_options) {
  const Kernel& kernel = options.kernel();
  if (run.inputs) verify_options.inputs = &*run.inputs;
  verify_options.expected = &run.expected;
  // A GPU runs whole launches only.
  verify_options.peer = run.case_.blocks.empty() ? engines.peer.get() : nullptr;
  verify_options.origin.machine = engines.machine;
  const PassingLine passing(fmt::format("verifying {} on {} ...", kernel.name, engines.primary->name()));
  if (kernel.name.find('%') != kernel.name.npos) require_launched(kernel, run);
  Verification result = verify(run.case_, kernel, *engines.primary, verify_options);
  if (result.verdict == Verdict::finding) note_missing_lines(options.ptx());
  if (run.inputs) {
    result.token.clear();
    result.replay = replay_with_file(options, run);
  } else {
    result.replay += options.replay_suffix();
  }
  return result;
}

void print_notes(const OutputOptions& output, const CaseToRun& run) {
  for (const std::string& note : run.notes) output.console().line(note);
}

int conclude(const OutputOptions& output, const FindingOptions& findings, const Verification& v,
             size_t depth) {
  if (v.verdict == Verdict::domain)
    fmt::print(stderr, "assay: out of the domain of {}: {}; {}\n", v.kernel, fmt::join(v.domain, "; "),
               v.outputs.empty() ? "nothing was launched" : "what its bound cannot follow is not judged");
  if (v.verdict != Verdict::domain || !v.outputs.empty()) print_verification(output.console(), v, depth);
  nlohmann::json result;
  if (output.wanted() || findings.wanted()) {
    Verification whole = v;
    whole.checkout = checkout_of(source_root());
    result = to_json(whole);
  } else {
    result = to_json(v);
  }
  FirstFailure failure;
  failure.attempt([&] { output.write(result); });
  failure.attempt([&] { findings.write(result, output.console()); });
  failure.rethrow();
  return v.verdict == Verdict::domain ? kBadInputStatus : findings.status({v}, output.allow_undecided());
}

}  // namespace assay::cli
