#include "src/cli/check_launch_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reports/print_shadow.h"
#include "src/base/document/shell_word.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/printable.h"
#include "src/base/tensor/tensor_file.h"
#include "src/case/names.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/output_options.h"
#include "src/cli/program_options.h"
#include "src/cli/run_case.h"
#include "src/verification/verify/check_program.h"

namespace assay::cli {
namespace {

void add_partly(Capsule& capsule, const std::vector<std::string>& names) {
  std::vector<std::string> outputs;
  for (const ProgramOutput& output : capsule.program.outputs) outputs.push_back(output.name);
  for (const std::string& name : names) {
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      throw BadInput("--partly: " + unknown_name("output", name, outputs));
    capsule.partly.insert(name);
  }
}

}  // namespace

int check_launch_file(ProgramOptions& program, const CheckAsked& asked, const EngineOptions& engines,
                      const OutputOptions& output, const FindingOptions& findings) {
  findings.check();
  output.check();
  Capsule capsule = program.load(!asked.blocks.empty());
  capsule.program.blocks = asked.blocks;
  const Engines on = engines.make();
  ProgramCheckOptions options;
  options.machine = options.origin.machine = on.machine;
  options.checks = vm::parse_checks(asked.checks);
  options.checks.strict_reads = asked.strict_reads;
  if (!capsule.recorded.empty()) options.recorded = &capsule.recorded;
  add_partly(capsule, asked.partly);
  options.partly = capsule.partly, options.fixed = capsule.fixed;
  options.orders = options.poison = options.architectures = !asked.once;
  options.shadow_instructions = asked.precision ? kShadowInstructions : 0;
  options.peer = asked.blocks.empty() ? on.peer.get() : nullptr;
  TensorMap expected;
  if (!asked.expect.empty()) expected = read_tensors(asked.expect), options.expected = &expected;
  options.tolerance = asked.tolerance;
  Outcome first;
  options.ran = [&](const Outcome& outcome) {
    first.printed = outcome.printed, first.not_printed = outcome.not_printed;
  };
  Verification result = [&] {
    const PassingLine passing(fmt::format("checking {} on {} ...", capsule.name, on.primary->name()));
    return check_program(capsule.name, capsule.program, capsule.inputs, options);
  }();
  for (const std::string& line : first.printed) fmt::print("printed  {}\n", ptx::printable(line));
  if (first.not_printed > 0) fmt::print("printed  {} more\n", first.not_printed);
  program.describe(capsule, result);
  if (asked.checks != "all") result.replay += " --checks " + asked.checks;
  if (asked.strict_reads) result.replay += " --strict-reads";
  if (!asked.blocks.empty()) result.replay += " --blocks " + asked.blocks;
  if (!asked.expect.empty())
    result.replay += fmt::format(" --expect {} --tolerance {}", shell_word(asked.expect), asked.tolerance);
  if (!asked.partly.empty()) result.replay += fmt::format(" --partly {}", fmt::join(asked.partly, ","));
  if (asked.once) result.replay += " --once";
  result.replay += engines.replay_suffix();
  const int status = conclude(output, findings, result);
  if (asked.precision) print_shadow(output.console(), result);
  return status;
}

}  // namespace assay::cli
