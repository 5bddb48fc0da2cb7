#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/section.h"
#include "tests/reports/console_text.h"
#include "tests/reports/read_tables.h"
#include "tests/result/sample_result.h"

namespace assay::sections {
extern const Section origins;
}  // namespace assay::sections

namespace assay {
namespace origins_section_test {

using nlohmann::json;
using test::Rows;

/// Two groups, of which the second has no line.
json two_groups() {
  json v = test::nan_verification();
  json& groups = v["origins"];
  groups[0]["elements"] = 96, groups[0]["outputs"] = {"o 84", "final_state 12"};
  groups.push_back(groups[0]);
  groups[1]["elements"] = 3, groups[1]["outputs"] = {"o 3"};
  json& origin = groups[1]["origin"];
  origin["kind"] = "input", origin["source_text"] = "", origin["sentence"] = "q[b=0] is nan | inf";
  origin["where"] = {{"file", ""}, {"line", 0}, {"ptx_line", 0}, {"function", ""}, {"frames", json::array()}};
  return v;
}

TEST(OriginsSection, ThePageHasOfEveryOriginItsElementsByOutput) {
  const Rows rows = test::read_page_rows(sections::origins.page(two_groups()["origins"], "", 2));
  const std::string sentence =
      "ex2 at kernels/gla/chunk.cu:142 got 130.25 because g[b=0,t=16,h=0,k=3] = -90.5";
  EXPECT_EQ(rows, (Rows{{"kind", "where", "elements", "outputs", "example"},
                        {"exp-overflow", "kernels/gla/chunk.cu:142, gla_chunk_output, PTX line 903", "96",
                         "o 84, final_state 12", sentence},
                        {"input", "", "3", "o 3", "q[b=0] is nan | inf"}}));
}

TEST(OriginsSection, AMarkdownRowStaysOneRowWhateverItHolds) {
  const Rows rows =
      test::read_markdown_table(sections::origins.markdown(two_groups()["origins"]), "| elements");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][0], "96");
  EXPECT_EQ(rows[0][1], "exp-overflow");
  EXPECT_EQ(rows[1].size(), 4u);
  EXPECT_EQ(rows[1][3], "q[b=0] is nan | inf");
}

TEST(OriginsSection, TheConsoleCountsThemAndNamesALineOnlyWhereOneIsKnown) {
  const auto text = [](const json& v) {
    return test::printed(
        [&](const Console& console) { sections::origins.print(console, verification_from_json(v), 0); });
  };
  EXPECT_EQ(text(two_groups()),
            "\n2 distinct origins\n"
            "       96  exp-overflow at chunk.cu:142  (o 84, final_state 12)\n"
            "           weight = exp2f(x) * (j <= i);\n"
            "           as ex2 at kernels/gla/chunk.cu:142 got 130.25 because g[b=0,t=16,h=0,k=3] = -90.5\n"
            "        3  input  (o 3)\n"
            "           as q[b=0] is nan | inf\n");
  EXPECT_TRUE(text(test::nan_verification()).starts_with("\n1 distinct origin\n"));
  EXPECT_EQ(text(test::passed_verification()), "");
}

}  // namespace origins_section_test
}  // namespace assay
