// assay check FILE: a program of any kind, judged without knowing what it computes.
#include <CLI/CLI.hpp>
#include <memory>

#include "src/base/vm/checks/checks.h"
#include "src/cli/check_launch_file.h"
#include "src/cli/commands.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/output_options.h"
#include "src/cli/program_options.h"
#include "src/cli/whole_number.h"

namespace assay::cli {
namespace {

struct CheckCommand {
  ProgramOptions program;
  EngineOptions engines;
  OutputOptions output;
  FindingOptions findings;
  CheckAsked asked;

  int run() { return check_launch_file(program, asked, engines, output, findings); }
};

}  // namespace

void add_check(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Runs a program that no operator describes, and says what is wrong with it whatever it computes");
  const auto options = std::make_shared<CheckCommand>();
  options->program.add_to(*command);
  CLI::Option* expect = command
                            ->add_option("--expect", options->asked.expect,
                                         "What outputs should be: .safetensors, .npz, or a folder of .npy")
                            ->type_name("FILE")
                            ->check(not_empty());
  command
      ->add_option("--tolerance", options->asked.tolerance,
                   "With --expect: an element may be off by so much of itself plus of its tensor's root mean "
                   "square (0: no bit)")
      ->check(CLI::NonNegativeNumber)
      ->needs(expect);
  std::string names;
  for (const vm::CheckRow& row : vm::check_rows()) names += ", " + std::string(row.name);
  command->add_option("--checks", options->asked.checks, "all, none, or some of" + names.substr(1))
      ->capture_default_str();
  command->add_flag(
      "--strict-reads", options->asked.strict_reads,
      "Trap at the first read of a register or byte that was never written, whether it matters or not");
  command->add_option("--blocks", options->asked.blocks,
                      "Runs some blocks only, as in 0,5,last (every launch)");
  command
      ->add_option(
          "--partly", options->asked.partly,
          "Outputs of which some elements stay unwritten by design, as \"partly\" in the launch file")
      ->type_name("NAME,...")
      ->delimiter(',');
  command->add_flag("--once", options->asked.once,
                    "Leaves out the repeated runs: other orders, other poison, other architectures");
  command->add_flag(
      "--precision", options->asked.precision,
      "Also beside exact arithmetic: how far outputs are off, and which source lines made that");
  options->engines.add_to(*command);
  options->output.add_to(*command);
  options->findings.add_to(*command);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
