// assay verify KERNEL: one case, judged element by element.
#include <CLI/CLI.hpp>
#include <memory>

#include "src/cli/check_options.h"
#include "src/cli/commands.h"
#include "src/cli/run_case.h"

namespace assay::cli {
namespace {

struct VerifyCommand {
  KernelOptions kernel;
  CaseOptions cases;
  EngineOptions engines;
  CheckOptions checks;
  OutputOptions output;
  FindingOptions findings;

  int run() {
    findings.check();
    output.check();
    const CaseToRun run = cases.resolve(kernel.kernel());
    print_notes(output, run);
    const Engines on = engines.make();
    VerifyOptions options;
    options.threads = engines.threads();
    checks.apply(options);
    const Verification result = run_case(kernel, run, on, options);
    return conclude(output, findings, result);
  }
};

}  // namespace

void add_verify(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("verify", "Runs one case and judges every element against its proved bound");
  const auto options = std::make_shared<VerifyCommand>();
  options->kernel.add_to(*command);
  options->cases.add_to(*command);
  options->engines.add_to(*command);
  options->checks.add_to(*command);
  options->output.add_to(*command);
  options->findings.add_to(*command);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
