// assay sweep KERNEL --over OPTION=VALUES ...: errors and bounds over sizes, decays, formats.
#include "src/campaign/sweep/sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "kernels/foreign.h"
#include "reports/print_sweep.h"
#include "src/base/numerics/bad_input.h"
#include "src/campaign/engine/interrupt.h"
#include "src/cli/case_options.h"
#include "src/cli/commands.h"
#include "src/cli/engine_options.h"
#include "src/cli/output_options.h"
#include "src/cli/progress_bar.h"
#include "src/cli/shard_option.h"
#include "src/cli/whole_number.h"

namespace assay::cli {
namespace {

struct SweepCommand {
  KernelOptions kernel;
  CaseOptions cases;
  EngineOptions engines;
  OutputOptions output;
  std::vector<std::string> over, compare;
  std::string compare_ptx, compare_plan, shard;
  SweepOptions options;
  std::optional<Kernel> other_build;

  /// The kernel asked for, then those it is compared with.
  std::vector<const Kernel*> kernels() {
    std::vector<const Kernel*> all = {&kernel.kernel()};
    for (const std::string& name : compare) all.push_back(&find_kernel(name));
    if (compare_plan.empty() && !compare_ptx.empty())
      throw BadInput("--compare-ptx needs a --compare-plan: give the kernel's launch plan too");
    if (!compare_plan.empty()) {
      other_build = load_foreign_kernel(compare_ptx, compare_plan);
      if (other_build->name == all.front()->name) other_build->name += ".2";
      all.push_back(&*other_build);
    }
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (all[i]->name == all[j]->name)
          throw BadInput(fmt::format("{} is to be compared with itself: name another kernel", all[i]->name));
    return all;
  }

  int run() {
    if (shard.empty()) require_one_process("sweep");
    options.kernels = kernels();
    options.shard = parse_shard(shard);
    for (const std::string& text : over) options.dimensions.push_back(parse_dimension(text));
    if (options.dimensions.empty())
      throw BadInput("nothing to sweep over: give --over OPTION=VALUES, as in --over length=64..4096");
    options.base = cases.unchecked(*options.kernels.front());
    const Engines on = engines.make(1);
    options.jobs = options.jobs == 0 ? engines.threads() : options.jobs;
    options.machine = on.machine;
    output.check("sweep");
    options.replay_suffix = kernel.replay_suffix();
    options.journal = output.beside_json(".part");
    const Interrupt interrupt;
    options.interrupted = &interrupt.signal();
    ProgressBar bar;
    options.progress = [&](double fraction, int64_t done, int64_t points, double seconds) {
      const double left = fraction > 0 ? seconds * (1 - fraction) / fraction : 0;
      bar.show(fraction,
               fmt::format("{} of {} points, {:.0f} s, about {:.0f} s left", done, points, seconds, left));
    };
    const Sweep result = sweep(options, *on.primary);
    bar.clear();
    print_sweep(output.console(), result);
    if (!result.complete) {
      fmt::print(stderr, "assay: interrupted; {}\n",
                 options.journal.empty()
                     ? "nothing is kept without --json"
                     : fmt::format("the same command goes on from {}", options.journal.string()));
      return 128 + interrupt.signal();
    }
    output.write(to_json(result));
    if (!options.journal.empty()) std::filesystem::remove(options.journal);
    return output.status(verdict_of(result));
  }
};

}  // namespace

void add_sweep(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Measures errors and bounds over any option of a case, for one kernel or several");
  const auto o = std::make_shared<SweepCommand>();
  const std::string what = "What is swept";
  o->kernel.add_to(*command);
  command
      ->add_option(
          "--over", o->over,
          fmt::format("Values of an option ({}), as in length=64..4096 (doubling), length=64..4096*4, "
                      "length=64..1024+64, "
                      "dtype=bf16,fp32; with semicolons where values hold commas. The first varies slowest",
                      fmt::join(swept_options(), ", ")))
      ->type_name("OPTION=VALUES")
      ->group(what);
  command->add_option("--compare", o->compare, "Other kernels of the same operator, on the same inputs")
      ->delimiter(',')
      ->type_name("KERNEL")
      ->group(what);
  command->add_option("--compare-ptx", o->compare_ptx, "PTX of a kernel to compare with ...")
      ->type_name("FILE.ptx|DIR")
      ->group(what);
  command->add_option("--compare-plan", o->compare_plan, "... and its launch plan")
      ->type_name("FILE.json")
      ->group(what);
  command->add_option("--seeds", o->options.seeds, "Runs of every point, with consecutive seeds")
      ->check(whole_number(1, 1000))
      ->capture_default_str()
      ->group(what);
  command
      ->add_option("--tolerance", o->options.tolerance,
                   "Largest error that is accepted, relative to the output's root mean square, for 'up to "
                   "which length' "
                   "(default: 8 units roundoff of bf16 and fp16, 64 of fp32)")
      ->check(CLI::PositiveNumber)
      ->group(what);
  command->add_option("--jobs", o->options.jobs, "Runs at once (default: all cores)")
      ->check(whole_number(0, kMostThreads))
      ->group(what);
  add_shard_option(*command, o->shard, "Runs every N-th point")->group(what);
  o->cases.add_to(*command);
  o->engines.add_to(*command);
  o->output.add_to(*command);
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
