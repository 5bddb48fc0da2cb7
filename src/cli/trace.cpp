// assay trace KERNEL|TOKEN: where the non-finite value behind an output element was born, what stands behind
// a finite one, and how far the run is from exact arithmetic.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "src/cli/check_options.h"
#include "src/cli/commands.h"
#include "src/cli/print_shadow.h"
#include "src/cli/run_case.h"
#include "src/cli/whole_number.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_summary.h"

namespace assay::cli {
namespace {

/// About ten seconds of shadow execution on two cores; a longer run goes without.
constexpr uint64_t kShadowInstructions = 500'000'000;

/// Values that no kernel made: the first of each class in each input that a file brings along.
void print_given(const Console& console, const TensorMap& inputs) {
  for (const auto& [name, tensor] : inputs) {
    const TensorSummary s = summary_of(tensor);
    for (const ValueClass& values : {s.nan, s.plus_infinity, s.minus_infinity})
      if (values.count)
        console.line(fmt::format("origin: {} = {} is in the inputs already, no kernel made it",
                                 tensor.element_name(values.first), tensor.value(values.first)));
  }
}

struct TraceCommand {
  KernelOptions kernel;
  CaseOptions cases;
  EngineOptions engines;
  CheckOptions checks;
  OutputOptions output;
  FindingOptions findings;
  std::optional<std::string> element;
  bool first = false, all = false;
  size_t depth = kDefaultDepth;

  /// The case of the options, or of a token in KERNEL's place.
  CaseToRun case_to_run() {
    if (kernel.name().find('/') == std::string::npos) return cases.resolve(kernel.kernel());
    if (const std::string given = cases.first_given(); !given.empty())
      throw BadInput(
          fmt::format("{} and a token: the token says the whole case; leave {} out", given, given));
    return {kernel.case_of_token(kernel.name()), std::nullopt, {}, "", {}};
  }

  int run() {
    findings.check();
    const CaseToRun run = case_to_run();
    print_notes(output, run);
    VerifyOptions options;
    options.threads = engines.threads();
    checks.apply(options);
    options.twice = false;
    options.shadow_instructions = kShadowInstructions;
    options.first = first, options.all_origins = all;
    options.slice = true;
    if (element) {
      options.element = parse_element(*element, run.case_, find_operator(kernel.kernel().operator_name));
    }
    const Engines on = engines.make();
    const Verification result = run_case(kernel, run, on, options);
    const int status = conclude(output, findings, result, depth);
    if (result.verdict == Verdict::domain && run.inputs) print_given(output.console(), *run.inputs);
    if (!result.origin && !result.slice && !result.trap && result.verdict != Verdict::domain) {
      output.console().line(
          "no output element is non-finite or beyond its bound; --element shows what stands behind one");
    }
    if (result.verdict != Verdict::domain) print_shadow(output.console(), result);
    return status;
  }
};

}  // namespace

void add_trace(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "trace", "Finds where a non-finite output element was born, and what stands behind any element");
  const auto options = std::make_shared<TraceCommand>();
  options->kernel.add_to(*command, "KERNEL|TOKEN");
  CLI::Option* element =
      command->add_option("--element", options->element,
                          "Output element to walk back from, finite or not, as in \"o[0,16,0,3]\" (default: "
                          "the first non-finite one by "
                          "output and index; where there is none, the one furthest beyond its bound)");
  CLI::Option* first =
      command->add_flag("--first", options->first,
                        "Walk back from the element whose non-finite value was born first in the "
                        "order of execution, blocks one after another");
  element->excludes(first);
  CLI::Option* all = command->add_flag(
      "--all", options->all,
      "Every distinct origin: one entry per kind and source line, with the elements behind it");
  element->excludes(all);
  command->add_option("--depth", options->depth, "Steps of a chain that are printed; the JSON has all")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  options->cases.add_to(*command);
  options->engines.add_to(*command);
  options->checks.add_to(*command);
  options->output.add_to(*command);
  options->findings.add_to(*command);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
