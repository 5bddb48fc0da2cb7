#include "reports/trend.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "src/result/document.h"
#include "src/result/identity.h"

namespace assay {
namespace {

using nlohmann::json;

/// Largest error over bound of each kernel and format.
json ratios_of(const FuzzRun& run) {
  std::map<std::pair<std::string, std::string>, double> largest;
  for (const TightnessRow& row : run.tightness) {
    double& ratio = largest[{row.kernel, row.dtype}];
    ratio = std::max(ratio, row.max_ratio);
  }
  json ratios = json::array();
  for (const auto& [key, ratio] : largest)
    ratios.push_back({{"kernel", key.first}, {"dtype", key.second}, {"max_ratio", json_of_double(ratio)}});
  return ratios;
}

json row_of(const StoredRun& stored) {
  const FuzzRun& run = stored.run;
  return {{"commit", stored.commit},    {"started", stored.started},
          {"kernels", run.kernels},     {"backend", run.backend},
          {"cases", run.cases},         {"passed", run.passed},
          {"undecided", run.undecided}, {"findings", run.findings.size()},
          {"ratios", ratios_of(run)}};
}

/// One entry per finding that any run had, in the order in which they were first seen.
json findings_of(const std::vector<StoredRun>& runs) {
  json findings = json::array();
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const Verification& v : runs[i].run.findings) {
      const std::string identity = identity_of(v);
      const auto [at, fresh] = place.emplace(identity, findings.size());
      if (fresh) findings.push_back({{"identity", identity}, {"kernel", v.kernel}, {"runs", json::array()}});
      json& finding = findings[at->second];
      finding["replay"] = v.replay;  // of the latest
      if (finding["runs"].empty() || finding["runs"].back() != i) finding["runs"].push_back(i);
    }
  return findings;
}

}  // namespace

json trend_of(const std::vector<StoredRun>& runs) {
  json rows = json::array();
  for (const StoredRun& run : runs) rows.push_back(row_of(run));
  json trend = document_frame("trend");
  trend["runs"] = std::move(rows);
  trend["findings"] = findings_of(runs);
  return trend;
}

}  // namespace assay
