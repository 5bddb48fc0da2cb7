// assay defects NAME..: fuzzes known defects without a hint, and says what was found of them.
#include "src/campaign/defects/defects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/unambiguous_json.h"
#include "src/campaign/engine/interrupt.h"
#include "src/case/case.h"
#include "src/case/names.h"
#include "src/cli/commands.h"
#include "src/cli/duration.h"
#include "src/cli/engine_options.h"
#include "src/cli/print_defects.h"
#include "src/cli/shard_option.h"
#include "src/cli/whole_number.h"
#include "src/result/tool.h"

namespace assay::cli {
namespace {

/// Names that choose a defect: its kernel's operator, its kernel, its own ("gla.chunk@S1").
std::array<std::string, 4> given_names_of(const Defect& defect) {
  return {"all", find_kernel(defect.kernel).operator_name, defect.kernel, defect.id()};
}

/// Those that one of the names chooses, each once. Throws BadInput where a name chooses none.
std::vector<const Defect*> defects_named(const std::vector<std::string>& names) {
  std::vector<const Defect*> chosen;
  std::set<std::string> known;
  for (const Defect& defect : defects()) {
    const std::array<std::string, 4> own = given_names_of(defect);
    known.insert(own.begin(), own.end());
    if (std::any_of(own.begin(), own.end(), [&](const std::string& name) {
          return std::count(names.begin(), names.end(), name) > 0;
        }))
      chosen.push_back(&defect);
  }
  for (const std::string& name : names)
    if (!known.contains(name))
      throw BadInput(
          unknown_name("kernel or operator with known defects", name, {known.begin(), known.end()}));
  return chosen;
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm day{};
  gmtime_r(&now, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

/// Before a long run rather than after it: throws BadInput where the file cannot be written.
void require_writable(const std::string& path) {
  if (path.empty()) return;
  const bool there = std::filesystem::exists(path);
  if (!std::ofstream(path, std::ios::app)) throw BadInput(fmt::format("{}: cannot be written", path));
  if (!there) std::filesystem::remove(path);
}

struct DefectsCommand {
  std::vector<std::string> names = {"all"};
  std::string time = "60s", json, markdown, tokens, check, explain, shard;
  int jobs = 0, together = 1;
  int64_t cases = 0;
  uint64_t seed = 1;
  EngineOptions engines;

  int run() {
    if (shard.empty()) require_one_process("defects");
    const Interrupt interrupt;
    DefectsOptions options;
    const Engines on = engines.make(1);
    options.together = together;
    options.each.time_s = parse_duration(time);
    options.each.cases = cases;
    options.each.jobs = jobs > 0 ? jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.each.seed = seed;
    options.each.backend = on.primary.get();
    options.each.machine = on.machine;
    options.each.interrupted = &interrupt.signal();
    if (!json.empty()) options.journal = json + ".part";
    const int status = check.empty() ? measure(options) : replay_all(options);
    return interrupt.signal() != 0 ? 128 + interrupt.signal() : status;
  }

 private:
  int measure(DefectsOptions options) {
    std::vector<const Defect*> chosen = defects_named(names);
    const Shard part = parse_shard(shard);
    int64_t number = 0;
    std::erase_if(chosen, [&](const Defect*) { return !part.takes(number++); });
    for (const std::string& file : {json, markdown, tokens}) require_writable(file);
    if (!explain.empty()) {
      options.tokens = recorded_tokens();
      std::erase_if(chosen, [&](const Defect* defect) { return !options.tokens.contains(defect->id()); });
    }
    std::vector<DefectTrial> trials = stored();
    const Console console(stdout);
    try_defects(chosen, options, trials, [&](const DefectTrial& trial) {
      print_trial(console, trial);
      std::fflush(stdout);
      if (json.empty()) return;
      write_file(json + ".new", document(trials).dump(1) + '\n');  // a kill leaves the old one or the new one
      std::filesystem::rename(json + ".new", json);
    });
    std::filesystem::remove(options.journal);  // all of it is in --json now
    if (*options.each.interrupted != 0) return 0;
    std::vector<DefectTrial> measured;
    for (const Defect* defect : chosen) measured.push_back(*trial_of(*defect, trials));
    const DefectTotals totals(measured);
    print_totals(console, totals);
    if (!markdown.empty()) write_file(markdown, defects_page(measured, command(), today()));
    std::vector<RecordedFinding> findings;
    for (const DefectTrial& trial : measured)
      if (trial.found()) findings.push_back({trial.token, trial.replay.cause, trial.replay.digest});
    if (!tokens.empty()) write_findings(tokens, findings);
    return totals.within_limits() ? 0 : 1;
  }

  /// Of --explain, by defect.
  std::map<std::string, std::string> recorded_tokens() const {
    std::map<std::string, std::string> of;
    for (const RecordedFinding& finding : read_findings(explain))
      of.emplace(finding.token.substr(0, finding.token.find('/')), finding.token);
    if (of.empty()) throw BadInput(fmt::format("{}: holds no finding to explain", explain));
    return of;
  }

  /// What --json holds from before.
  std::vector<DefectTrial> stored() const {
    std::vector<DefectTrial> trials;
    if (json.empty() || !std::filesystem::exists(json)) return trials;
    try {
      // Outlives the loop over its part.
      const nlohmann::json document = nlohmann::json::parse(read_file(json));
      for (const nlohmann::json& trial : document.at("trials"))
        trials.push_back(defect_trial_from_json(trial));
    } catch (const nlohmann::json::exception& error) {
      throw BadInput(fmt::format("{}: not what 'assay defects --json' writes ({}); delete it to begin anew",
                                 json, json_fault(error)));
    }
    return trials;
  }

  nlohmann::json document(const std::vector<DefectTrial>& trials) const {
    nlohmann::json list = nlohmann::json::array();
    for (const DefectTrial& trial : trials) list.push_back(to_json(trial));
    return {{"kind", "defects"},
            {"tool", {{"version", tool_version()}, {"commit", tool_commit()}}},
            {"time_s", parse_duration(time)},
            {"seed", seed},
            {"trials", list}};
  }

  std::string command() const {
    if (!explain.empty()) return fmt::format("assay defects {} --explain {}", fmt::join(names, " "), explain);
    const std::string budget = cases > 0 ? fmt::format("--cases {}", cases) : "--time " + time;
    return fmt::format("assay defects {} {} --seed {}", fmt::join(names, " "), budget, seed);
  }

  /// Findings of --check again; with --tokens, those that still are findings are written with what they give
  /// now.
  int replay_all(const DefectsOptions& options) const {
    const std::vector<RecordedFinding> all = read_findings(check);
    if (all.empty()) throw BadInput(fmt::format("{}: holds no finding to replay", check));
    require_writable(tokens);
    const Console console(stdout);
    const auto print = [&](const RecordedFinding& stored, const TokenReplay& replay) {
      if (stored.repeated_by(replay)) return;
      console.line(fmt::format("{} {}: {} {} {}, clean {}; stored {} {}",
                               console.styled(Style::bad, "differs"), stored.token, name_of(replay.verdict),
                               replay.cause, replay.digest, name_of(replay.clean_verdict), stored.cause,
                               stored.digest));
      std::fflush(stdout);
    };
    const std::vector<TokenReplay> replays = replay_findings(all, options, print);
    if (*options.each.interrupted != 0) return 0;
    std::vector<RecordedFinding> now;
    int64_t good = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      good += all[i].repeated_by(replays[i]);
      if (replays[i].holds()) now.push_back({all[i].token, replays[i].cause, replays[i].digest});
    }
    if (!tokens.empty()) write_findings(tokens, now);
    console.line(
        fmt::format("{} of {} stored findings fail again with the same bits and pass on the clean kernel",
                    good, all.size()));
    return good == std::ssize(all) ? 0 : 1;
  }
};

}  // namespace

void add_defects(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "defects", "Fuzzes the known defects without a hint: found, explained, traced to the patched line?");
  const auto o = std::make_shared<DefectsCommand>();
  command
      ->add_option("KERNEL|OPERATOR|all", o->names,
                   "Several, as in gla.chunk@S1,gla.chunk@S2; or gla.chunk, gla, all")
      ->delimiter(',')
      ->capture_default_str();
  CLI::Option* cases = command->add_option("--cases", o->cases, "Of each, in place of time")
                           ->check(whole_number(1, 1'000'000'000));
  command->add_option("--time", o->time, "Of fuzzing each, as in 60s, 5m; compiling a defect comes on top")
      ->excludes(cases)
      ->capture_default_str();
  add_shard_option(*command, o->shard, "Tries every N-th defect");
  command->add_option("--jobs", o->jobs, "Cases in flight (default: all cores)")
      ->check(whole_number(0, kMostThreads));
  command->add_option("--together", o->together, "Defects at once, each with --jobs")
      ->check(whole_number(1, kMostThreads))
      ->capture_default_str();
  command->add_option("--seed", o->seed, "Of the cases drawn")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  command
      ->add_option("--json", o->json, "Written after each; a defect that is in it already is not tried again")
      ->type_name("FILE");
  command->add_option("--markdown", o->markdown, "The page of kernels/defects/README.md")->type_name("FILE");
  command->add_option("--tokens", o->tokens, "The findings' tokens with their causes and output bits")
      ->type_name("FILE");
  command
      ->add_option("--explain", o->explain,
                   "Without a search: explains the findings of such a file as a search would have")
      ->type_name("FILE");
  command
      ->add_option("--check", o->check,
                   "Instead: replays the findings of such a file (with --tokens, writes what they give now)")
      ->type_name("FILE");
  o->engines.add_to(*command);
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
