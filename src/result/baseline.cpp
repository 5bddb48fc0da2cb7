#include "src/result/baseline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "src/result/identity.h"

namespace assay {
namespace {

/// What became of the case that a finding was last seen with.
std::string outcome_of(const Verification& earlier, const FuzzRun& run) {
  for (const RerunRow& row : run.reruns)
    if (row.kernel == earlier.kernel && row.token == earlier.token) return row.outcome;
  return "not rerun";
}

}  // namespace

Baseline baseline_of(std::string source, const nlohmann::json& result) {
  Baseline baseline{std::move(source), {}};
  if (result.is_object() && result.contains("kind") && result["kind"] == "fuzz") {
    baseline.findings = fuzz_run_from_json(result).findings;
  } else if (Verification v = verification_from_json(result); !v.cause.empty()) {
    baseline.findings.push_back(std::move(v));
  }
  return baseline;
}

void compare_with_baseline(const Baseline& baseline, FuzzRun& run) {
  std::set<std::string> earlier, now;
  for (const Verification& v : baseline.findings) earlier.insert(identity_of(v));
  for (Verification& v : run.findings) {
    now.insert(identity_of(v));
    v.known = earlier.contains(identity_of(v));
  }
  BaselineReport& report = run.baseline.emplace();
  report.source = baseline.source;
  for (const Verification& v : baseline.findings) {
    const bool fuzzed = std::find(run.kernels.begin(), run.kernels.end(), v.kernel) != run.kernels.end();
    if (!fuzzed || !now.insert(identity_of(v)).second) continue;
    report.gone.push_back({v.kernel, v.cause, v.token, outcome_of(v, run)});
  }
}

}  // namespace assay
