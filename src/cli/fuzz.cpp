// assay fuzz KERNEL|OPERATOR|all: many small cases, shrunk findings, tables.
#include "fuzz/fuzz.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "reports/print_fuzz.h"
#include "src/base/numerics/bad_input.h"
#include "src/campaign/engine/interrupt.h"
#include "src/capsule/launch_folder.h"
#include "src/case/names.h"
#include "src/cli/case_options.h"
#include "src/cli/commands.h"
#include "src/cli/duration.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/first_failure.h"
#include "src/cli/fuzz_program.h"
#include "src/cli/output_options.h"
#include "src/cli/progress_bar.h"
#include "src/cli/shard_option.h"
#include "src/cli/stored_result.h"
#include "src/cli/whole_number.h"
#include "src/result/baseline.h"

namespace assay::cli {
namespace {

/// A kernel, all kernels of an operator, or all.
std::vector<const Kernel*> kernels_named(const std::string& what) {
  std::vector<const Kernel*> chosen;
  std::vector<std::string> known = {"all"};
  for (const Kernel& kernel : kernels()) {
    if (what == "all" || what == kernel.operator_name || what == kernel.name) chosen.push_back(&kernel);
    known.push_back(kernel.name);
    if (std::find(known.begin(), known.end(), kernel.operator_name) == known.end())
      known.push_back(kernel.operator_name);
  }
  if (chosen.empty() && what.find_first_of("@%") != std::string::npos) chosen.push_back(&find_kernel(what));
  for (const Operator& op : operators())
    if (chosen.empty() && op.name == what)
      throw BadInput(
          fmt::format("{}: no kernel of this operator is built in; give one by --ptx and --plan", what));
  if (chosen.empty()) throw BadInput(unknown_name("kernel or operator", what, known));
  return chosen;
}

/// Progress as a bar, findings as lines.
class ConsoleListener : public Listener {
 public:
  explicit ConsoleListener(const Console& console) : console_(console) {}

  void started(const std::vector<const Kernel*>& kernels, const FuzzOptions& options,
               const std::string& backend) override {
    std::string names;
    for (const Kernel* kernel : kernels) names += (names.empty() ? "" : ", ") + kernel->name;
    if (kernels.size() > 4) names = fmt::format("{} kernels", kernels.size());
    console_.line(fmt::format("fuzzing {} on {}, seed {}", names, backend, options.seed));
    bar_.show(0, "0 cases");
  }
  void progress(const FuzzProgress& p) override {
    bar_.show(
        p.fraction,
        fmt::format("{} cases, {} finding{}{}, {:.0f} s", p.cases, p.findings, p.findings == 1 ? "" : "s",
                    p.shrinking > 0 ? fmt::format(" ({} shrinking)", p.shrinking) : "", p.seconds));
  }
  void found(const Verification& v) override {
    bar_.clear();
    console_.line(fmt::format("{} {}\n  {}", console_.styled(Style::bad, "found"), v.cause, v.replay));
    console_.flush();  // it is in the database by now: a killed run's log says what it has
  }
  void shrunk(const Verification&, const Verification& smaller) override {
    bar_.clear();
    console_.line(
        fmt::format("{} {}\n  {}", console_.styled(Style::dim, "shrunk"), smaller.cause, smaller.replay));
    console_.flush();
  }
  void left_out(const Case& c) override {
    bar_.clear();
    fmt::print(stderr, "assay: not enough memory for {}; the run goes on without this case\n", token_of(c));
  }
  void database_lost(const std::string& why) override {
    bar_.clear();
    fmt::print(stderr, "assay: {}; the run goes on and stores nothing more\n", why);
  }
  void clear() { bar_.clear(); }

 private:
  const Console& console_;
  ProgressBar bar_;
};

struct FuzzCommand {
  std::string what, time = "60s", db = "assay.db", baseline, shard;
  std::optional<uint64_t> seed;
  KernelOptions own;
  EngineOptions engines;
  OutputOptions output;
  FindingOptions findings;
  FuzzOptions options;
  bool details = false;

  std::vector<const Kernel*> chosen() {
    if (own.foreign() && !what.empty())
      throw BadInput(fmt::format("both a kernel ({}) and --ptx or --plan given: give one of them", what));
    if (own.foreign()) return {&own.kernel()};
    if (what.empty())
      throw BadInput("no kernel given: name a kernel or an operator, or give --ptx and --plan");
    const std::vector<const Kernel*> named = kernels_named(what);
    if (own.mutant().empty()) return named;
    if (named.size() > 1)
      throw BadInput(fmt::format("--mutant is of one kernel, and {} names {}", what, named.size()));
    return {&find_kernel(named.front()->name + "%" + own.mutant())};
  }

  /// The whole run has a verdict of its own where all inputs were out of domain, or it could not be finished.
  int status_of(const FuzzRun& run, int signal) const {
    if (findings.status(run.findings, output.allow_undecided()) != 0) return 1;
    if (signal != 0) return 128 + signal;  // no pass: the budget was not spent
    if (!run.ended_early.empty() || !run.database_lost.empty() || verdict_of(run) == name_of(Verdict::domain))
      return kBadInputStatus;
    return 0;
  }

  /// The findings that --baseline names; their cases run first.
  std::optional<Baseline> known_findings() {
    if (baseline.empty()) return std::nullopt;
    Baseline known = read_baseline(baseline);
    for (const Verification& v : known.findings) options.first.push_back(v.case_);
    return known;
  }

  /// A launch file in a kernel's place: a program that no operator describes.
  int fuzz_program() {
    if (!shard.empty()) throw BadInput(what + ": --shard is of kernels, not of launch files");
    if (!baseline.empty() || options.known_first)
      throw BadInput(what + ": --baseline and --known-first are of kernels, not of launch files");
    return fuzz_launch_file(what, own.ptx(),
                            {parse_duration(time), options.cases, seed ? *seed : std::random_device{}(),
                             options.jobs ? options.jobs : engines.threads()},
                            engines, output, findings);
  }

  int run() {
    findings.check();
    options.shard = parse_shard(shard);
    if (!shard.empty() && !seed) throw BadInput("--shard: give all shards one --seed");
    if (is_launch_file(what)) return fuzz_program();
    const std::vector<const Kernel*> kernels = chosen();
    const std::optional<Baseline> known = known_findings();
    const Engines on = engines.make(1, true);
    options.time_s = parse_duration(time);
    options.seed = seed ? *seed : std::random_device{}();
    if (options.jobs == 0) options.jobs = engines.threads();
    options.db = db;
    options.far = on.primary->name().starts_with("vm");
    options.peer = on.peer.get();
    options.origin.machine = on.machine;
    options.replay_suffix = own.replay_suffix();
    const Console console = output.console();
    ConsoleListener listener(console);
    const Interrupt interrupt;
    options.interrupted = &interrupt.signal();
    FuzzRun run = fuzz(kernels, *on.primary, options, listener);
    listener.clear();
    if (!run.ended_early.empty()) fmt::print(stderr, "assay: {}; the run ended early\n", run.ended_early);
    if (known) compare_with_baseline(*known, run);
    print_fuzz_run(console, run, details);
    const nlohmann::json result = to_json(run);
    FirstFailure failure;
    failure.attempt([&] { output.write(result); });
    failure.attempt([&] { findings.write(result, console); });
    failure.rethrow();
    return status_of(run, interrupt.signal());
  }
};

}  // namespace

void add_fuzz(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("fuzz", "Draws cases and looks for faults: bounds, bits, NaN, traps, properties");
  const auto o = std::make_shared<FuzzCommand>();
  const std::string budget = "Budget", results = "Results";
  command->add_option(
      "KERNEL|OPERATOR|all", o->what,
      "As in gla.chunk, gla.chunk@S1, gla.chunk%ID (a mutant), gla, all; or a launch file of a program "
      "that no operator describes (assay check)");
  o->own.add_to(*command, "");
  CLI::Option* cases = command->add_option("--cases", o->options.cases, "Cases, over all kernels together")
                           ->check(whole_number(1, 1'000'000'000))
                           ->group(budget);
  command->add_option("--time", o->time, "Duration, as in 60s, 5m, 2h")
      ->excludes(cases)
      ->group(budget)
      ->capture_default_str();
  command
      ->add_option(
          "--seed", o->seed,
          "With --cases it decides the cases that are drawn, together with the corpus that --db holds "
          "(default: drawn, and printed)")
      ->check(whole_number(0, UINT64_MAX))
      ->group(budget);
  add_shard_option(*command, o->shard, "Part I of N of the run: draws its part of --cases, for itself")
      ->group(budget);
  command->add_option("--jobs", o->options.jobs, "Cases in flight (default: all cores)")
      ->check(whole_number(1, kMostThreads))
      ->group(budget);
  command->add_option("--db", o->db, "Findings and corpus (SQLite); empty for none")
      ->type_name("FILE")
      ->group(results)
      ->capture_default_str();
  command
      ->add_flag("--known-first", o->options.known_first, "Rerun the findings stored in the database first")
      ->group(results);
  command
      ->add_flag(
          "--details", o->details,
          "Prints each kernel's tables: by format, output, decay and length; loose bounds with the reason")
      ->group(results);
  command
      ->add_option(
          "--baseline", o->baseline,
          "A result of an earlier run: its findings are run again first, are listed as known, and do "
          "not fail the run")
      ->type_name("RESULT.json|assay.db")
      ->group(results);
  o->engines.add_to(*command);
  o->output.add_to(*command);
  o->findings.add_to(*command);
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
