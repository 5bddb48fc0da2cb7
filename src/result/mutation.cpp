#include "src/result/mutation.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "src/result/document.h"

namespace assay {

int64_t count_of(const MutationRun& run, const char* outcome) {
  return std::count_if(run.mutants.begin(), run.mutants.end(),
                       [&](const Mutant& m) { return m.outcome == outcome; });
}

double score_of(const MutationRun& run) {
  const double killed = static_cast<double>(count_of(run, kKilled)),
               survived = static_cast<double>(count_of(run, kSurvived));
  return killed + survived == 0 ? 100 : 100 * killed / (killed + survived);
}

std::vector<MutationCount> counts_by_change(const MutationRun& run) {
  std::map<std::string, MutationCount> counts;
  for (const Mutant& m : run.mutants) {
    MutationCount& count = counts[m.change];
    count.change = m.change;
    count.killed += m.outcome == kKilled;
    count.within_bound += m.outcome == kWithinBound;
    count.equivalent += m.outcome == kEquivalent;
    count.survived += m.outcome == kSurvived;
  }
  std::vector<MutationCount> rows;
  for (auto& [change, count] : counts) rows.push_back(std::move(count));
  return rows;
}

nlohmann::json to_json(const MutationRun& run) {
  using nlohmann::json;
  json mutants = json::array(), counts = json::array();
  for (const Mutant& m : run.mutants)
    mutants.push_back({{"id", m.id},
                       {"change", m.change},
                       {"where",
                        {{"file", m.where.file},
                         {"line", m.where.line},
                         {"ptx_line", m.where.ptx_line},
                         {"function", m.where.function}}},
                       {"source_text", m.source_text},
                       {"original", m.original},
                       {"replacement", m.replacement},
                       {"outcome", m.outcome},
                       {"reason", m.reason},
                       {"token", m.token},
                       {"cases", m.cases},
                       {"reached_by", m.reached_by}});
  for (const MutationCount& c : counts_by_change(run))
    counts.push_back({{"change", c.change},
                      {"killed", c.killed},
                      {"within_bound", c.within_bound},
                      {"equivalent", c.equivalent},
                      {"survived", c.survived}});
  json document = document_frame("mutation");
  document.update({{"kernel", run.kernel},
                   {"backend", run.backend},
                   {"seed", run.seed},
                   {"asked", run.asked},
                   {"possible", run.possible},
                   {"places", run.places},
                   {"cases", run.cases},
                   {"instructions", run.instructions},
                   {"instructions_reached", run.instructions_reached},
                   {"seconds", run.seconds},
                   {"set_aside", run.set_aside},
                   {"killed", count_of(run, kKilled)},
                   {"within_bound", count_of(run, kWithinBound)},
                   {"equivalent", count_of(run, kEquivalent)},
                   {"survived", count_of(run, kSurvived)},
                   {"score", score_of(run)},
                   {"changes", counts},
                   {"mutants", mutants}});
  return document;
}

}  // namespace assay
