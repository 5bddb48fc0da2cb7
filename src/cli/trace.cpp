// assay trace KERNEL: where the non-finite value behind an output element was born.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "src/cli/commands.h"
#include "src/cli/run_case.h"

namespace assay::cli {
namespace {

struct TraceCommand {
  KernelOptions kernel;
  CaseOptions cases;
  EngineOptions engines;
  OutputOptions output;
  std::string element;

  int run() {
    const CaseToRun run = cases.resolve(kernel.kernel());
    VerifyOptions options;
    options.threads = engines.threads();
    options.twice = false;
    if (!element.empty()) {
      options.element = parse_element(element, run.case_, find_operator(kernel.kernel().operator_name));
    }
    const Engines on = engines.make();
    const Verification result = run_case(kernel, run, on, options);
    const int status = conclude(output, result);
    if (!result.origin && result.verdict != "domain") {
      output.console().line(element.empty() ? "nothing to trace: no output element is non-finite"
                                            : fmt::format("nothing to trace: {} is finite", element));
    }
    return status;
  }
};

}  // namespace

void add_trace(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("trace", "Finds where a non-finite output element was born");
  const auto options = std::make_shared<TraceCommand>();
  options->kernel.add_to(*command);
  command->add_option(
      "--element", options->element,
      "Output element to walk back from, as in \"o[0,16,0,3]\" (default: the first non-finite one)");
  options->cases.add_to(*command);
  options->engines.add_to(*command);
  options->output.add_to(*command);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
