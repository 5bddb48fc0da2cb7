// assay replay TOKEN|FILE: a case again, with every property that applies to it; a launch file, checked.
#include <CLI/CLI.hpp>
#include <memory>

#include "fuzz/properties.h"
#include "src/capsule/launch_folder.h"
#include "src/cli/check_launch_file.h"
#include "src/cli/check_options.h"
#include "src/cli/commands.h"
#include "src/cli/program_options.h"
#include "src/cli/run_case.h"
#include "src/verification/verify/explain.h"

namespace assay::cli {
namespace {

struct ReplayCommand {
  std::string token;
  KernelOptions kernel;
  EngineOptions engines;
  CheckOptions checks;
  OutputOptions output;
  FindingOptions findings;
  ProgramOptions program;

  int run() {
    findings.check();
    output.check();
    if (is_launch_file(token)) {
      checks.refuse_of_claims(token);
      program.choose(token, kernel.ptx(), kernel.mutant());
      return check_launch_file(program, {.checks = checks.names(), .strict_reads = checks.strict_reads()},
                               engines, output, findings);
    }
    program.refuse_drawing(token);
    const Case c = kernel.case_of_token(token);
    const Kernel& replayed = kernel.kernel();
    const Engines on = engines.make();
    VerifyOptions options;
    options.threads = engines.threads();
    checks.apply(options);
    Verification result = run_case(kernel, {c, std::nullopt, {}, "", {}}, on, options);
    const bool values_right = result.verdict == Verdict::pass;
    std::vector<DerivedRun> derived;
    if (was_run(result)) derived = judge_properties(result, replayed, *on.primary);
    if (values_right && result.verdict == Verdict::finding)
      explain_properties(replayed, *on.primary, options, derived, result);
    return conclude(output, findings, result);
  }
};

}  // namespace

void add_replay(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("replay", "Repeats a case from its token, with every property");
  const auto options = std::make_shared<ReplayCommand>();
  command
      ->add_option(
          "TOKEN", options->token,
          "As in gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0; or a launch file (assay check)")
      ->required();
  options->kernel.add_to(*command, "");
  options->program.add_drawing_to(*command, true);
  options->engines.add_to(*command);
  options->checks.add_to(*command);
  options->output.add_to(*command);
  options->findings.add_to(*command);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
