#include "src/campaign/defects/defects.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/campaign/engine/budget.h"
#include "src/campaign/engine/journal.h"

namespace assay {
namespace {

/// All that a trial depends on beside its defect.
std::string identity_of(const DefectsOptions& options) {
  const DefectTrialOptions& each = options.each;
  return nlohmann::json{{"time_s", each.time_s},
                        {"cases", each.cases},
                        {"seed", each.seed},
                        {"backend", each.backend->name()},
                        {"tokens", options.tokens}}
      .dump();
}

}  // namespace

const DefectTrial* trial_of(const Defect& defect, const std::vector<DefectTrial>& trials) {
  for (const DefectTrial& trial : trials)
    if (trial.defect == defect.id() && trial.patch == digest_of(defect)) return &trial;
  return nullptr;
}

void try_defects(const std::vector<const Defect*>& defects, const DefectsOptions& options,
                 std::vector<DefectTrial>& trials, const std::function<void(const DefectTrial&)>& tried) {
  Journal journal(options.journal, "defects", identity_of(options));
  const Budget budget(0, options.each.interrupted);
  const auto merge = [&](const nlohmann::json& record) {
    const DefectTrial trial = defect_trial_from_json(record);
    std::erase_if(trials, [&](const DefectTrial& other) { return other.defect == trial.defect; });
    trials.push_back(trial);
    tried(trial);
  };
  size_t begun = 0;
  Engine engine;
  engine.run(options.together, [&]() -> Task {
    while (begun < defects.size() && trial_of(*defects[begun], trials)) ++begun;
    if (begun == defects.size() || budget.over()) return nullptr;
    const Defect& defect = *defects[begun++];
    const auto work = [&defect, &options, &budget] {
      const auto token = options.tokens.find(defect.id());
      const DefectTrial trial = token == options.tokens.end()
                                    ? try_defect(defect, options.each)
                                    : explain_token(defect, token->second, options.each);
      return budget.interrupted() ? nlohmann::json() : to_json(trial);
    };
    return journaled(journal, defect.id() + " " + digest_of(defect), work, merge);
  });
}

std::vector<TokenReplay> replay_findings(
    const std::vector<RecordedFinding>& findings, const DefectsOptions& options,
    const std::function<void(const RecordedFinding&, const TokenReplay&)>& replayed) {
  const Budget budget(0, options.each.interrupted);
  std::vector<TokenReplay> replays(findings.size());
  size_t begun = 0;
  Engine engine;
  engine.run(options.together, [&]() -> Task {
    if (begun == findings.size() || budget.over()) return nullptr;
    return [&, i = begun++] {
      return Merge(
          [&, i, replay = replay_token(findings[i].token, *options.each.backend, options.each.machine)] {
            replays[i] = replay;
            replayed(findings[i], replay);
          });
    };
  });
  return replays;
}

}  // namespace assay
