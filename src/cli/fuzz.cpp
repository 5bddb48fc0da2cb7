// assay fuzz KERNEL|OPERATOR|all: many small cases, shrunk findings, tables.
#include "fuzz/fuzz.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "fuzz/sql_connection.h"
#include "fuzz/trial_runner.h"
#include "reports/print_fuzz.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/source_root.h"
#include "src/campaign/engine/interrupt.h"
#include "src/cli/commands.h"
#include "src/cli/duration.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/first_failure.h"
#include "src/cli/free_cores.h"
#include "src/cli/fuzz_program.h"
#include "src/cli/kernel_list.h"
#include "src/cli/missing_lines.h"
#include "src/cli/output_options.h"
#include "src/cli/progress_bar.h"
#include "src/cli/shard_option.h"
#include "src/cli/stored_result.h"
#include "src/cli/whole_number.h"
#include "src/result/baseline.h"

namespace assay::cli {
namespace {

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
  void progress(const FuzzProgress& p) override { bar_.show(p.fraction, text_of(p)); }
  void found(const Verification& v) override {
    bar_.clear();
    console_.line(fmt::format("{} {}\n  {}", console_.styled(Style::bad, "found"), v.cause,
                              Console::command(v.replay)));
    console_.flush();  // it is in the database by now: a killed run's log says what it has
  }
  void shrunk(const Verification&, const Verification& smaller) override {
    bar_.clear();
    console_.line(fmt::format("{} {}\n  {}", console_.styled(Style::dim, "shrunk"), smaller.cause,
                              Console::command(smaller.replay)));
    console_.flush();
  }
  void left_out(const Case& c) override {
    bar_.clear();
    fmt::print(stderr, "assay: not enough memory for {}; the run goes on without this case\n", token_of(c));
  }
  void database_away(const std::string& why) override {
    bar_.clear();
    if (why.empty())
      fmt::print(stderr, "assay: the database is back, and has all that was found\n");
    else
      fmt::print(stderr, "assay: {}; the run goes on, and stores what it finds when the server is back\n",
                 why);
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
  std::string time = "60s", db = "assay.db", baseline, shard;
  std::optional<uint64_t> seed;
  std::optional<int64_t> min_cases;
  KernelList what;
  EngineOptions engines;
  OutputOptions output;
  FindingOptions findings;
  FuzzOptions options;
  bool details = false;
  const CLI::App* app = nullptr;

  /// The whole run has a verdict of its own where all inputs were out of domain, or it could not be finished.
  int status_of(const FuzzRun& run, int signal) const {
    if (findings.status(run.findings, output.allow_undecided()) != 0) return 1;
    if (signal != 0) return 128 + signal;  // no pass: the budget was not spent
    if (!run.ended_early.empty() || !run.database_lost.empty() || verdict_of(run) == name_of(Verdict::domain))
      return kBadInputStatus;
    return run.too_few.empty() ? 0 : 1;
  }

  /// The findings that --baseline names; their cases run first.
  std::optional<Baseline> known_findings() {
    if (baseline.empty()) return std::nullopt;
    if (baseline == db && !is_postgres_url(baseline) && !std::filesystem::exists(baseline)) {
      fmt::print(stderr, "assay: {}: there is none yet: every finding is new\n", baseline);
      return Baseline{baseline, {}};
    }
    Baseline known = read_baseline(baseline);
    for (const Verification& v : known.findings)
      if (!v.program) options.first.push_back(v.case_);
    return known;
  }

  /// Kernels and launch files share the budget by their number.
  int64_t part_of_cases(size_t subjects) const {
    const size_t all = what.kernels().size() + what.launch_files().size();
    return options.cases == 0 ? 0
                              : std::max<int64_t>(1, total_cases * static_cast<int64_t>(subjects) /
                                                         static_cast<int64_t>(all));
  }
  double part_of_time(size_t subjects) const {
    const size_t all = what.kernels().size() + what.launch_files().size();
    return total_time * static_cast<double>(subjects) / static_cast<double>(all);
  }

  Engines make_engines() {
    Engines on = engines.make(1, true);
    options.far = on.primary->name().starts_with("vm");
    options.peer = on.peer.get();
    options.origin.machine = on.machine;
    options.replay_suffixes = what.replay_suffixes();
    return on;
  }

  FuzzRun fuzz_kernels(const Console& console) {
    const Engines on = make_engines();
    options.cases = part_of_cases(what.kernels().size());
    options.time_s = part_of_time(what.kernels().size());
    options.db = db;
    ConsoleListener listener(console);
    return fuzz(what.kernels(), *on.primary, options, listener);
  }

  /// One of many that mpirun started: each does a case at a time, and the first none.
  void join(const Team& team) {
    if (options.jobs != 0)
      throw BadInput("--jobs: under mpirun every process runs one case at a time; leave it out");
    if (!what.launch_files().empty())
      throw BadInput(what.launch_files().front().path +
                     ": kernels are shared out under mpirun, launch files not");
    options.jobs = team.size() - 1;
  }

  int serve_leader(Team& team) {
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_IGN);  // the leader heeds them
    const Engines on = make_engines();
    serve_trials(team, what.kernels(), *on.primary, options);
    return 0;
  }

  FuzzRun fuzz_everything(const Console& console) {
    std::optional<FuzzRun> run;
    if (!what.kernels().empty()) run = fuzz_kernels(console);
    for (const ListedLaunchFile& file : what.launch_files()) {
      if (*options.interrupted != 0 && run) break;
      FuzzRun more = fuzz_launch_file(file.path, file.ptx,
                                      {part_of_time(1), part_of_cases(1), options.seed, options.jobs,
                                       options.interrupted, options.min_cases, options.baseline},
                                      engines, console);
      if (run)
        add_run(std::move(more), *run);
      else
        run = std::move(more);
    }
    run->checkout = options.checkout;
    return *std::move(run);
  }

  int run() {
    findings.check();
    output.check("fuzz");
    options.shard = parse_shard(shard);
    if (!shard.empty() && !seed) throw BadInput("--shard: give all shards one --seed");
    options.min_cases = min_cases.value_or(shard.empty() ? 1 : 0);
    what.load();
    const std::unique_ptr<Team> team = launched_team();
    if (team) join(*team);
    if (team && team->rank() > 0) return serve_leader(*team);
    std::optional<Leader> leader;
    if (team) options.leader = &leader.emplace(*team);
    return lead();
  }

  int lead() {
    if (!shard.empty() && !what.launch_files().empty())
      throw BadInput(what.launch_files().front().path + ": --shard is of kernels, not of launch files");
    const std::optional<Baseline> known = known_findings();
    options.baseline = known ? &*known : nullptr;
    if (what.kernels().empty() && options.known_first)
      throw BadInput("--known-first: findings of launch files are not kept in the database");
    if (what.kernels().empty() && app->count("--db") > 0 && !db.empty())
      throw BadInput(
          "--db: findings of launch files are not kept in a database; leave it out (--json keeps the "
          "result)");
    total_time = parse_duration(time), total_cases = options.cases;
    options.seed = seed ? *seed : std::random_device{}();
    if (options.jobs == 0) options.jobs = engines.threads() > 0 ? engines.threads() : own_cores();
    options.checkout = checkout_of(source_root());
    const Console console = output.console();
    const Interrupt interrupt;
    options.interrupted = &interrupt.signal();
    FuzzRun run = fuzz_everything(console);
    if (!run.ended_early.empty()) fmt::print(stderr, "assay: {}; the run ended early\n", run.ended_early);
    if (known) compare_with_baseline(*known, run);
    print_fuzz_run(console, run, details);
    if (!run.findings.empty())
      for (const std::string& ptx : what.ptx()) note_missing_lines(ptx);
    const nlohmann::json result = to_json(run);
    FirstFailure failure;
    failure.attempt([&] { output.write(result); });
    failure.attempt([&] { findings.write(result, console); });
    failure.rethrow();
    return status_of(run, interrupt.signal());
  }

  double total_time = 60;
  int64_t total_cases = 0;
};

}  // namespace

void add_fuzz(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("fuzz", "Draws cases and looks for faults: bounds, bits, NaN, traps, properties");
  const auto o = std::make_shared<FuzzCommand>();
  const std::string budget = "Budget", results = "Results";
  o->what.add_to(*command);
  o->app = command;
  CLI::Option* cases = command->add_option("--cases", o->options.cases, "Cases, over all kernels together")
                           ->check(whole_number(1, 1'000'000'000))
                           ->group(budget);
  command
      ->add_option(
          "--time", o->time,
          "Duration, as in 60s, 5m, 2h; compiling kernels for the first time is not counted, and explaining "
          "a finding may take 5 s more")
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
  command
      ->add_option("--db,--database", o->db,
                   "Findings and corpus of kernels, not of launch files: a file (SQLite), or a server "
                   "(PostgreSQL); empty for none")
      ->type_name("FILE|postgresql://..")
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
  command
      ->add_option(
          "--min-cases", o->min_cases,
          "Cases that must be judged of each kernel: with fewer the run is inconclusive, exit status 1 "
          "(default: 1; of a shard 0)")
      ->check(whole_number(0, 1'000'000'000))
      ->group("Continuous integration");
  o->engines.add_to(*command);
  o->output.add_to(*command);
  o->findings.add_to(*command);
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
