// assay mutate KERNEL|FILE: how many small changes of the kernel's PTX are seen.
#include "src/campaign/mutate/mutate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/print_mutation.h"
#include "src/base/mutation/mutation.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/vm/tensor_core.h"
#include "src/campaign/engine/interrupt.h"
#include "src/campaign/mutate/mutate_program.h"
#include "src/capsule/launch_folder.h"
#include "src/cli/case_options.h"
#include "src/cli/commands.h"
#include "src/cli/duration.h"
#include "src/cli/program_options.h"
#include "src/cli/progress_bar.h"
#include "src/cli/shard_option.h"
#include "src/cli/stored_result.h"
#include "src/cli/whole_number.h"

namespace assay::cli {
namespace {

struct MutateCommand {
  KernelOptions own;
  MutateOptions options;
  std::string time, arch = "sm_90", json, direction, shard, again;
  ProgramOptions program;
  double fail_under = 0, tolerance = 0;
  bool details = false;

  /// Of a launch file: what the program gives itself is what its mutants are held against.
  MutationRun mutate_file(const std::function<void(const MutationProgress&)>& progress) {
    if (!direction.empty()) throw BadInput(own.name() + ": --direction is of kernels, not of launch files");
    program.choose(own.name(), own.ptx(), "");
    ProgramMutateOptions asked;
    asked.mutants = options.mutants, asked.seed = options.seed, asked.time_s = options.time_s;
    asked.jobs = options.jobs, asked.machine = options.machine, asked.interrupted = options.interrupted;
    asked.tolerance = tolerance;
    return mutate_program(program.file(), asked, progress);
  }

  /// The survivors of an earlier run. False where there are none.
  bool read_again() {
    const nlohmann::json run = read_result(again);
    const auto fails = [&] {
      throw BadInput(fmt::format("--again {}: no result of assay mutate {}", again, own.kernel().name));
    };
    try {
      if (run.at("kernel") != own.kernel().name) fails();
      for (const nlohmann::json& mutant : run.at("mutants"))
        if (mutant.at("outcome") == name_of(MutantOutcome::survived))
          options.again.emplace(mutant.at("id"), mutant.at("original"));
    } catch (const nlohmann::json::exception&) {
      fails();
    }
    return !options.again.empty();
  }

  int run() {
    if (shard.empty()) require_one_process("mutate");
    const bool is_file = is_launch_file(own.name());
    options.shard = parse_shard(shard);
    if (is_file && !shard.empty())
      throw BadInput(own.name() + ": --shard is of kernels, not of launch files");
    if (!is_file && tolerance != 0) throw BadInput("--tolerance is of launch files: kernels have bounds");
    const Kernel* const kernel = is_file ? nullptr : &own.kernel();
    if (is_file && !again.empty())
      throw BadInput(own.name() + ": --again is of kernels, not of launch files");
    vm::tensor_core_model(arch);  // throws for an architecture that the machine does not know
    options.machine.arch = arch;
    if (!time.empty()) options.time_s = parse_duration(time);
    if (!direction.empty() && direction_of(direction) != Direction::both)
      options.directions = {direction_of(direction)};
    if (fail_under < 0 || fail_under > 100) throw BadInput("--fail-under: write a percentage, 0 to 100");
    if (!again.empty() && !read_again()) {
      fmt::print(stderr, "assay: --again {}: none survived in it, so nothing is left to try\n", again);
      return 0;
    }
    if (!json.empty() && json != "-") {
      require_writable(json);
      require_replaceable(json, "mutation");
    }
    const Console console(json == "-" ? stderr : stdout);
    const Interrupt interrupt;
    options.interrupted = &interrupt.signal();
    if (!is_file && !json.empty() && json != "-") options.journal = json + ".part";
    options.own = own.replay_suffix();
    ProgressBar bar;
    const auto progress = [&](const MutationProgress& p) {
      const double share = static_cast<double>(p.done) / static_cast<double>(std::max<int64_t>(p.of, 1));
      bar.show(share, fmt::format("{} {} of {}, {} killed, {} survived", p.doing, p.done, p.of, p.killed,
                                  p.survived));
    };
    const MutationRun result = is_file ? mutate_file(progress) : mutate(*kernel, options, progress);
    bar.clear();
    print_mutation_run(console, result, details);
    const std::string text = to_json(result).dump(1);
    if (json == "-") fmt::print("{}\n", text);
    if (!json.empty() && json != "-") write_file(json, text + "\n");
    if (interrupt.signal() == 0 || is_file)
      std::filesystem::remove(options.journal);
    else if (!options.journal.empty())
      fmt::print(stderr, "assay: interrupted; the same command goes on from {}\n", options.journal.string());
    if (has_score(result) && score_of(result) < fail_under) return 1;
    if (interrupt.signal() != 0) return 128 + interrupt.signal();
    if (result.mutants.empty()) throw BadInput("no mutant was tried in that time: give more --time");
    if (fail_under > 0 && !has_score(result))
      throw BadInput(
          "--fail-under: no mutant was killed and none survived, so there is no score; give more --mutants");
    return 0;
  }
};

std::string operators_text() {
  std::string text = "Changes:";
  for (const ptx::MutationOperator& row : ptx::mutation_operators())
    text += fmt::format("\n  {:<17} {} ({})", row.name, row.summary, row.opcodes);
  return text;
}

}  // namespace

void add_mutate(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "mutate",
      "Changes single instructions of a kernel and counts how many changes the cases and properties see");
  const auto o = std::make_shared<MutateCommand>();
  o->own.add_to(*command, "KERNEL|FILE", false);
  command
      ->add_option("--mutants", o->options.mutants,
                   "Mutants, drawn evenly over pairs of source line and change")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--again", o->again,
                   "Those alone that survived in this result, with the cases that there are now")
      ->type_name("FILE");
  command->add_option("--seed", o->options.seed, "Decides mutants and cases, whatever --jobs is")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--direction", o->direction,
                      "forward, backward or both (default: all that the kernel has)");
  add_shard_option(*command, o->shard, "Every N-th mutant, and its part of --mutants");
  command->add_option("--time", o->time, "Ends the run after so long, as in 60s, 5m; the rest is untried");
  command->add_option("--jobs", o->options.jobs, "Mutants in flight (default: all cores)")
      ->check(whole_number(0, kMostThreads));
  command->add_option("--arch", o->arch, "Architecture of the machine: sm_80, sm_89, sm_90")
      ->capture_default_str();
  command
      ->add_option("--json", o->json,
                   "Result as JSON (reports/schema.json), - for standard output; with a file, a run that was "
                   "interrupted or killed goes on where it stopped")
      ->type_name("FILE");
  command->add_option("--fail-under", o->fail_under,
                      "Exit with 1 where fewer percent of killed and survived are killed");
  command
      ->add_option("--tolerance", o->tolerance,
                   "Of a launch file: values may be off by so much of themselves plus of their tensor's root "
                   "mean square (0: no bit)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--details", o->details, "Lists every mutant, not only survivors");
  command->footer(operators_text());
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
