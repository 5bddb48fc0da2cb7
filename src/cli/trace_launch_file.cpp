#include "src/cli/trace_launch_file.h"

#include <fmt/format.h>

#include "reports/print_shadow.h"
#include "src/base/document/shell_word.h"
#include "src/cli/check_options.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/output_options.h"
#include "src/cli/print_line_view.h"
#include "src/cli/program_options.h"
#include "src/cli/run_case.h"
#include "src/verification/verify/check_program.h"

namespace assay::cli {

int trace_launch_file(ProgramOptions& program, const TraceAsked& asked, const EngineOptions& engines,
                      const OutputOptions& output, const FindingOptions& findings) {
  findings.check();
  const Capsule capsule = program.load();
  ProgramCheckOptions options;
  options.machine = options.origin.machine = engines.make().machine;
  options.checks = asked.checks.parsed();
  options.check_instructions = asked.checks.most_instructions();
  options.orders = options.poison = options.architectures = false;
  options.partly = capsule.partly, options.fixed = capsule.fixed;
  options.shadow_instructions = kShadowInstructions;
  options.trace = true, options.first = asked.first, options.element = asked.element;
  Verification result = check_program(capsule.name, capsule.program, capsule.inputs, options);
  program.describe(capsule, result);
  result.replay =
      "assay trace " + program.replay_text() + asked.checks.replay_suffix() + engines.replay_suffix();
  if (!asked.element.empty()) result.replay += " --element " + shell_word(asked.element);
  if (asked.first) result.replay += " --first";
  const int status = conclude(output, findings, result, asked.depth);
  if (!result.origin && !result.slice && !result.trap)
    output.console().line(
        "every output element is finite, and none is known to differ from its own exact arithmetic; "
        "--element shows what stands behind one");
  print_shadow(output.console(), result);
  return status;
}

int view_line_of(ProgramOptions& program, const vm::LineQuestion& question, const EngineOptions& engines,
                 const OutputOptions& output) {
  const Capsule capsule = program.load();
  vm::LineView view = vm::view_line(capsule.program, capsule.inputs, engines.make().machine, question);
  return show_line_view(output, view);
}

}  // namespace assay::cli
