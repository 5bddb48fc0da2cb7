#include "reports/csv.h"

#include <gtest/gtest.h>

#include "reports/markup.h"
#include "src/base/numerics/bad_input.h"
#include "tests/reports/read_tables.h"
#include "tests/result/sample_result.h"
#include "tests/result/sample_sweep.h"

namespace assay {
namespace {

using nlohmann::json;
using test::Rows;

TEST(Csv, ASweepHasARowPerCellWithItsSettingsAndAnyText) {
  json sweep = to_json(test::full_sweep());
  const std::string hostile = "a \"b\", c\r\nd";
  sweep["cells"][2]["note"] = hostile;
  const Rows rows = test::read_csv(render_csv(sweep));
  ASSERT_EQ(rows.size(), 25u);
  EXPECT_EQ(rows[0][0], "kernel");
  EXPECT_EQ(rows[0][2], "length");
  EXPECT_EQ(rows[0][4], "dtype");
  EXPECT_EQ(rows[0].back(), "note");
  EXPECT_EQ(rows[3].back(), hostile);
  EXPECT_EQ(rows[24][1], "");
  EXPECT_EQ(rows[24][5], "refused");
  EXPECT_EQ(rows[24].back(), "T = 256, decay \"reset\", fp32: not taken");
}

TEST(Csv, NoTextBecomesAFormulaAndNoNumberAText) {
  json sweep = to_json(test::full_sweep());
  for (const char* formula : {"=1+1", "+1", "-1", "@SUM(A1)"}) {
    sweep["cells"][0]["note"] = formula;
    sweep["cells"][0]["over_seeds"]["bias"] = -0.25;
    const Rows rows = test::read_csv(render_csv(sweep));
    EXPECT_EQ(rows[1].back(), std::string(" ") + formula);
    EXPECT_NE(std::find(rows[1].begin(), rows[1].end(), "-0.25"), rows[1].end());
  }
  sweep["cells"][0]["over_seeds"]["max_ratio"] = "inf";
  sweep["cells"][0]["gate_min"] = "-inf";
  const Rows rows = test::read_csv(render_csv(sweep));
  EXPECT_NE(std::find(rows[1].begin(), rows[1].end(), "inf"), rows[1].end());
  EXPECT_NE(std::find(rows[1].begin(), rows[1].end(), "-inf"), rows[1].end());
}

TEST(Csv, OtherResultsHaveARowPerOutputOrTightness) {
  const Rows outputs = test::read_csv(render_csv(test::passed_verification()));
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[1][1], "o");
  EXPECT_EQ(outputs[2][1], "final_state");
  EXPECT_EQ(test::read_csv(render_csv(test::fuzz_run(0))).size(), 5u);
}

TEST(Csv, RefusesWhatIsNoResult) {
  EXPECT_THROW(render_csv(json{{"kind", "x"}}), BadInput);
}

}  // namespace
}  // namespace assay
