#include "reports/html_table.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/reports/page_elements.h"

namespace assay {
namespace html_table_test {

using nlohmann::json;

TEST(HtmlTable, TextsBecomeNoMarkupAndMarkupStaysOne) {
  EXPECT_EQ(html::text_cell("a < b"), "<td>a &lt; b</td>");
  EXPECT_EQ(html::mono_cell("\"%f1\""), "<td class=\"mono\">&quot;%f1&quot;</td>");
  EXPECT_EQ(html::row_head("<code>k</code>"), "<th scope=\"row\"><code>k</code></th>");
  EXPECT_EQ(html::list_section(json{"p < q"}, 3, "Properties"),
            "<h3>Properties</h3>\n<ul>\n<li class=\"mono\">p &lt; q</li>\n</ul>\n");
}

TEST(HtmlTable, ANumberIsReadShortAndKeptExact) {
  EXPECT_EQ(html::number_cell(0.3333333333333333),
            "<td class=\"number\"><data value=\"0.3333333333333333\">0.3333</data></td>");
  EXPECT_EQ(html::number_cell(json("nan"), true),
            "<td class=\"number bad\"><data value=\"nan\">nan</data></td>");
  EXPECT_EQ(html::exact_cells(130.25),
            "<td class=\"number\"><data value=\"130.25\">130.25</data></td><td "
            "class=\"mono\">0x1.048p+7</td>");
}

TEST(HtmlTable, WhatIsAbsentIsADashAndNeverAZero) {
  EXPECT_EQ(html::number_cell(nullptr), "<td class=\"number\"><span class=\"muted\">-</span></td>");
  EXPECT_EQ(html::fact("sources", ""), "");
  EXPECT_EQ(html::list_section(json::array(), 2, "Properties"), "");
}

TEST(HtmlTable, HeadsOfNumbersStandOverThemAndACaptionOnlyWhereThereIsOne) {
  const std::string rows = "<tr>" + html::text_cell("a") + html::number_cell(1) + "</tr>\n";
  std::vector<std::string> heads;
  for (const test::Element& e : test::elements(html::table("", {{"kernel"}, {"cases", true}, {""}}, rows)))
    if (e.name == "th") heads.push_back(e.text + "|" + e.attribute("class") + "|" + e.attribute("scope"));
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_EQ(heads[0], "kernel||col");
  EXPECT_EQ(heads[1], "cases|number|col");
  EXPECT_EQ(html::table("", {{"a"}}, "").find("caption"), std::string::npos);
  EXPECT_NE(html::table("<b>worst</b>", {{"a"}}, "").find("<p class=\"caption\"><b>worst</b></p><table>"),
            std::string::npos);
}

}  // namespace html_table_test
}  // namespace assay
