#include "src/result/mutation.h"

#include <algorithm>
#include <map>

#include "src/result/document.h"

namespace assay {

int64_t count_of(const MutationRun& run, MutantOutcome outcome) {
  return std::count_if(run.mutants.begin(), run.mutants.end(),
                       [&](const Mutant& m) { return m.outcome == outcome; });
}

double score_of(const MutationRun& run) {
  const double killed = static_cast<double>(count_of(run, MutantOutcome::killed)),
               survived = static_cast<double>(count_of(run, MutantOutcome::survived));
  return killed + survived == 0 ? 0 : 100 * killed / (killed + survived);
}

std::vector<MutationCount> counts_by_change(const MutationRun& run) {
  std::map<std::string, MutationCount> counts;
  for (const Mutant& m : run.mutants) {
    MutationCount& count = counts[m.change];
    count.change = m.change;
    count.killed += m.outcome == MutantOutcome::killed;
    count.within_bound += m.outcome == MutantOutcome::within_bound;
    count.equivalent += m.outcome == MutantOutcome::equivalent;
    count.survived += m.outcome == MutantOutcome::survived;
  }
  std::vector<MutationCount> rows;
  for (auto& [change, count] : counts) rows.push_back(std::move(count));
  return rows;
}

nlohmann::json to_json(const MutationRun& run) {
  return document("mutation", run);
}

}  // namespace assay
