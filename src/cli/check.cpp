// assay check FILE: a program of any kind, judged without knowing what it computes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/printable.h"
#include "src/base/tensor/npy.h"
#include "src/base/tensor/tensor_file.h"
#include "src/cli/commands.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/output_options.h"
#include "src/cli/print_shadow.h"
#include "src/cli/program_options.h"
#include "src/cli/run_case.h"
#include "src/cli/whole_number.h"
#include "src/verification/verify/check_program.h"

namespace assay::cli {
namespace {

struct CheckCommand {
  ProgramOptions program;
  EngineOptions engines;
  OutputOptions output;
  FindingOptions findings;
  std::string checks = "all", blocks, expect;
  double tolerance = 0;
  bool no_repeats = false, precision = false;

  int run() {
    findings.check();
    Capsule capsule = program.load();
    capsule.program.blocks = blocks;
    const Engines on = engines.make();
    ProgramCheckOptions options;
    options.machine = options.origin.machine = on.machine;
    options.checks = vm::parse_checks(checks);
    if (!capsule.recorded.empty()) options.recorded = &capsule.recorded;
    options.partly = capsule.partly, options.fixed = capsule.fixed;
    options.orders = options.poison = options.architectures = !no_repeats;
    options.shadow_instructions = precision ? kShadowInstructions : 0;
    options.peer = blocks.empty() ? on.peer.get() : nullptr;
    TensorMap expected;
    if (!expect.empty()) expected = read_tensors(expect), options.expected = &expected;
    options.tolerance = tolerance;
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
    if (checks != "all") result.replay += " --checks " + checks;
    if (!blocks.empty()) result.replay += " --blocks " + blocks;
    if (!expect.empty()) result.replay += fmt::format(" --expect {} --tolerance {}", expect, tolerance);
    if (no_repeats) result.replay += " --once";
    const int status = conclude(output, findings, result);
    if (precision) print_shadow(output.console(), result);
    return status;
  }
};

}  // namespace

void add_check(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Runs a program that no operator describes, and says what is wrong with it whatever it computes");
  const auto options = std::make_shared<CheckCommand>();
  options->program.add_to(*command);
  command
      ->add_option("--expect", options->expect,
                   "What outputs should be: .safetensors, .npz, or a folder of .npy")
      ->type_name("FILE");
  command
      ->add_option("--tolerance", options->tolerance,
                   "With --expect: an element may be off by so much of itself plus of its tensor's root mean "
                   "square (0: no bit)")
      ->check(CLI::NonNegativeNumber);
  std::string names;
  for (const vm::CheckRow& row : vm::check_rows()) names += ", " + std::string(row.name);
  command->add_option("--checks", options->checks, "all, none, or some of" + names.substr(1))
      ->capture_default_str();
  command->add_option("--blocks", options->blocks, "Runs some blocks only, as in 0,5,last (every launch)");
  command->add_flag("--once", options->no_repeats,
                    "Leaves out the repeated runs: other orders, other poison, other architectures");
  command->add_flag(
      "--precision", options->precision,
      "Also beside exact arithmetic: how far outputs are off, and which source lines made that");
  options->engines.add_to(*command);
  options->output.add_to(*command);
  options->findings.add_to(*command);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
