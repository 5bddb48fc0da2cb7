#include "src/result/trend.h"

#include <algorithm>
#include <map>

#include "src/result/document.h"
#include "src/result/identity.h"

namespace assay {
namespace {

/// Largest error over bound of each kernel and format, before the output itself is rounded: that alone takes
/// most runs to the limit.
std::vector<TrendRatio> ratios_of(const FuzzRun& run) {
  std::map<std::pair<std::string, std::string>, double> largest;
  for (const TightnessRow& row : run.tightness) {
    if (row.cases == 0) continue;  // every one undecided
    double& ratio = largest[{row.kernel, row.dtype}];
    ratio = std::max(ratio, row.max_tightness);
  }
  std::vector<TrendRatio> ratios;
  for (const auto& [key, ratio] : largest) ratios.push_back({key.first, key.second, ratio});
  return ratios;
}

TrendRun row_of(const StoredRun& stored) {
  const FuzzRun& run = stored.run;
  return {.commit = run.checkout ? text_of(*run.checkout) : "assay " + stored.commit,
          .started = stored.started,
          .kernels = run.kernels,
          .backend = run.backend,
          .cases = run.cases,
          .passed = run.passed,
          .undecided = run.undecided,
          .findings = static_cast<int64_t>(run.findings.size()),
          .ratios = ratios_of(run)};
}

std::vector<TrendFinding> findings_of(const std::vector<StoredRun>& runs) {
  std::vector<TrendFinding> findings;
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const Verification& v : runs[i].run.findings) {
      const std::string identity = identity_of(v);
      const auto [at, fresh] = place.emplace(identity, findings.size());
      if (fresh) findings.push_back({.identity = identity, .kernel = v.kernel});
      TrendFinding& finding = findings[at->second];
      finding.replay = v.replay;  // of the latest
      const int64_t number = static_cast<int64_t>(i);
      if (finding.runs.empty() || finding.runs.back() != number) finding.runs.push_back(number);
    }
  return findings;
}

}  // namespace

nlohmann::json trend_of(const std::vector<StoredRun>& runs) {
  Trend trend;
  for (const StoredRun& run : runs) trend.runs.push_back(row_of(run));
  trend.findings = findings_of(runs);
  return document("trend", std::move(trend));
}

}  // namespace assay
