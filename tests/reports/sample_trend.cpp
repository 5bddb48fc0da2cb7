#include "tests/reports/sample_trend.h"

#include "src/result/trend.h"

namespace assay::test {
namespace {

using nlohmann::json;

/// A run with the ratios (kernel, dtype, ratio) and the findings of the causes.
StoredRun run_of(const std::string& commit, std::vector<TightnessRow> rows,
                 const std::vector<std::string>& causes) {
  StoredRun stored{commit, "2025-01-31 12:00:00", {}};
  stored.run.kernels = {"gla.chunk"};
  stored.run.cases = 20;
  stored.run.tightness = std::move(rows);
  for (const std::string& cause : causes) {
    Verification v;
    v.kernel = "gla.chunk";
    v.verdict = Verdict::finding;
    v.cause = cause;
    v.replay = "assay replay of " + commit;
    stored.run.findings.push_back(v);
  }
  return stored;
}

TightnessRow row(const std::string& kernel, const std::string& dtype, double ratio) {
  TightnessRow r;
  r.kernel = kernel, r.dtype = dtype, r.cases = 1, r.max_tightness = ratio;
  return r;
}

}  // namespace

json sample_trend() {
  return trend_of(
      {run_of("aaa", {row("gla.chunk", "bf16", 0.75), row("gla.chunk", "bf16", 0.5)}, {}),
       run_of("bbb", {row("gla.chunk", "bf16", 4), row("gla.chunk", "fp32", 0.25)}, {"violation o"}),
       run_of("ccc", {row("gla.chunk", "bf16", 4)}, {"violation o", "violation o", "nonfinite o"}),
       run_of("ddd", {row("gla.chunk", "bf16", 0.5)}, {})});
}

}  // namespace assay::test
