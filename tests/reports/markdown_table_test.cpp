#include "reports/markdown_table.h"

#include <gtest/gtest.h>

#include "tests/reports/read_tables.h"

namespace assay {
namespace {

TEST(MarkdownTable, CodeKeepsItsTextWhateverItHolds) {
  const std::pair<const char*, const char*> table[] = {{"a", "`a`"},         {"", ""},
                                                       {"a`b", "`` a`b ``"}, {"``", "``` `` ```"},
                                                       {"a\nb", "`a b`"},    {"a|b", "`a\\|b`"}};
  for (const auto& [text, span] : table) EXPECT_EQ(markdown::code(text), span);
}

TEST(MarkdownTable, RowsAreReadBackBehindTheirHead) {
  const std::string text = markdown::head({"name", "cases"}, 1) + markdown::row({markdown::code("a|b"), "3"});
  EXPECT_NE(text.find("|---|---:|"), std::string::npos) << text;
  const test::Rows rows = test::read_markdown_table(text, "| name |");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0][1], "3");
}

}  // namespace
}  // namespace assay
