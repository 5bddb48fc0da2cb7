#include "fuzz/looseness.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace assay {
namespace {

constexpr int64_t kLeastCases = 3;  ///< of the page that is kept

nlohmann::json kept_run() {
  return nlohmann::json::parse(std::ifstream(ASSAY_SOURCE_DIR "/tests/data/tightness_run.json"));
}

TightnessRow row(const char* kernel, const char* output, const char* dtype, double tightness,
                 double relative_bound, const char* length = "T <= 1024") {
  return {kernel, output, dtype, "mild", length, 9, 0.5, tightness, relative_bound};
}

struct Expected {
  TightnessRow row;
  const char* reason;  ///< "": none is known; null: tight enough
};

const Expected kExpected[] = {
    {row("gla.chunk", "o", "bf16", 0.2, 0.01), nullptr},
    {row("gla.chunk", "o", "fp32", 0.01, 1e-5), nullptr},
    {row("gla.chunk", "o", "fp32", 0.002, 1e-5, "T > 1024"), nullptr},
    {row("gla.chunk", "o", "fp32", 0.0099, 1e-5), "sums"},
    {row("gla.chunk", "o", "fp32", 0.0001, 1e-5), ""},
    {row("gla.chunk", "o", "bf16", 0.001, 0.9), ""},
    {row("gla.fused_recurrent", "o", "bf16", 0.001, 1e-5), "rounding"},
    {row("gla.chunk", "o", "fp16", 0.001, 0.0014), "rounding"},
    {row("gla.chunk", "o", "fp16", 0.001, 0.0015), ""},
    {row("gla.fused_recurrent", "final_state", "fp32", 0.0001, 1e-5), ""},
    {row("gla.chunk", "dg", "fp32", 0.0001, 1e-5), "product"},
    {row("retention.chunk", "dinitial_state", "fp32", 0.0001, 1e-5), ""},
    {row("rwkv6.chunk", "du", "fp32", 0.0001, 1e-5), "total"},
    {row("gsa.chunk", "dq", "fp32", 0.0001, 1e9), "softmax"},
    {row("rwkv7.fused_recurrent", "da", "fp32", 0.0001, 1e9), "norms"},
    {row("linear_attn_norm.chunk", "dz0", "fp32", 0.0001, 1e9), "quotient"},
    {row("strangers", "dg", "bf16", 0.0001, 1e9), ""},
};

TEST(Looseness, is_below_the_limit_and_has_the_reason_that_the_analysis_gives) {
  for (const Expected& x : kExpected) {
    const std::string where = x.row.kernel + ' ' + x.row.output + ' ' + x.row.dtype;
    const std::vector<LooseRow> loose = loose_rows({x.row}, 5);
    ASSERT_EQ(loose.size(), x.reason ? 1 : 0) << where;
    if (x.reason) {
      EXPECT_EQ(loose[0].reason ? loose[0].reason->name : "", x.reason) << where;
    }
    EXPECT_TRUE(loose_rows({x.row}, 10).empty()) << where;
  }
}

/// Every row of the run below the limit has its reason, and every reason its row: none is left over.
TEST(Looseness, of_the_run_that_is_kept_has_a_reason_in_every_row) {
  std::vector<TightnessRow> rows;
  const nlohmann::json run = kept_run();
  for (const nlohmann::json& x : run.at("tightness"))
    rows.push_back({x.at("kernel"), x.at("output"), x.at("dtype"), x.at("decay"), x.at("length_class"),
                    x.at("cases"), x.at("max_ratio"), x.at("max_tightness"), x.at("max_relative_bound")});
  EXPECT_GT(rows.size(), 500);
  std::set<std::string_view> used;
  for (const LooseRow& x : loose_rows(rows, kLeastCases)) {
    ASSERT_NE(x.reason, nullptr) << x.row.kernel << ' ' << x.row.output << ' ' << x.row.dtype << ' '
                                 << x.row.decay << ' ' << x.row.max_tightness;
    used.insert(x.reason->name);
  }
  for (const LooseReason& reason : loose_reasons())
    if (reason.name != "quotient") {
      EXPECT_TRUE(used.contains(reason.name)) << reason.name;
    }
}

TEST(Looseness, page_is_what_the_kept_run_gives) {
  std::stringstream page;
  page << std::ifstream(ASSAY_SOURCE_DIR "/bench/TIGHTNESS.md").rdbuf();
  EXPECT_EQ(page.str(), render_looseness(kept_run(), kLeastCases))
      << "write it anew: tightness tests/data/tightness_run.json 3 > bench/TIGHTNESS.md";
}

TEST(Looseness, page_names_a_row_without_a_reason) {
  nlohmann::json run = kept_run();
  run["tightness"] = {{{"kernel", "gla.chunk"},
                       {"output", "o"},
                       {"dtype", "bf16"},
                       {"decay", "mild"},
                       {"length_class", "T <= 1024"},
                       {"cases", 9},
                       {"max_ratio", 0.5},
                       {"max_tightness", 0.001},
                       {"max_relative_bound", 0.9}}};
  EXPECT_NE(render_looseness(run, kLeastCases).find("no reason known"), std::string::npos);
}

}  // namespace
}  // namespace assay
