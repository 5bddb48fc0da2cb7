// assay trace KERNEL: where the non-finite value behind an output element was born, and how far the run is
// from exact arithmetic.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "src/cli/check_options.h"
#include "src/cli/commands.h"
#include "src/cli/print_shadow.h"
#include "src/cli/run_case.h"

namespace assay::cli {
namespace {

/// About ten seconds of shadow execution on two cores; a longer run goes without.
constexpr uint64_t kShadowInstructions = 500'000'000;

struct TraceCommand {
  KernelOptions kernel;
  CaseOptions cases;
  EngineOptions engines;
  CheckOptions checks;
  OutputOptions output;
  std::string element;

  int run() {
    const CaseToRun run = cases.resolve(kernel.kernel());
    VerifyOptions options;
    options.threads = engines.threads();
    checks.apply(options);
    options.twice = false;
    options.shadow_instructions = kShadowInstructions;
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
    if (result.verdict != "domain") print_shadow(output.console(), result);
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
  options->checks.add_to(*command);
  options->output.add_to(*command);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
