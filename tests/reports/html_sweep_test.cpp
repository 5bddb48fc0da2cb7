#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "reports/html.h"
#include "reports/html_sections.h"
#include "reports/markup.h"
#include "reports/page_text.h"
#include "reports/sweep_answers.h"
#include "tests/reports/page_elements.h"
#include "tests/result/sample_sweep.h"

namespace assay {
namespace html_sweep_test {

using nlohmann::json;

std::vector<test::Element> elements(const json& sweep) {
  return test::elements(test::own_text(sweep));
}

TEST(HtmlSweep, SaysEveryAnswerAndTheVerdict) {
  const Sweep sweep = test::full_sweep();
  std::string words;
  bool badge = false;
  for (const test::Element& e : elements(to_json(sweep))) {
    words += e.text + "\n";
    badge |= e.attribute("class") == "badge finding";
  }
  EXPECT_TRUE(badge);
  for (const Answer& answer : answers(sweep))
    for (const std::string& sentence : answer.sentences)
      EXPECT_NE(words.find(escape_markup(sentence)), words.npos) << sentence;
  for (const Answer& answer : answers(sweep))
    for (const auto& row : answer.table.rows)
      for (const std::string& cell : row) EXPECT_NE(words.find(escape_markup(cell)), words.npos) << cell;
}

TEST(HtmlSweep, TheChartsDataAreTheDocumentsNumbersOfEveryCellThatRan) {
  const json document = to_json(test::full_sweep());
  const json data = html::chart_data(document);
  EXPECT_EQ(data["x"], "length");
  EXPECT_EQ(data["logarithmic"], true);
  size_t drawn = 0;
  for (const json& cell : document["cells"]) {
    if (cell["samples"].empty()) continue;
    const json& shown = data["cells"].at(drawn++);
    EXPECT_EQ(shown["kernel"], cell["kernel"]);
    EXPECT_EQ(shown["error"], cell["over_seeds"]["max_error"]);
    EXPECT_EQ(shown["bound"], cell["over_seeds"]["max_bound"]);
    EXPECT_EQ(shown["ratio"], cell["over_seeds"]["max_ratio"]);
    EXPECT_EQ(shown["x"], std::stod(cell["settings"][0]["value"].get<std::string>()));
    EXPECT_EQ(shown["series"], cell["settings"][1]["value"]);
    EXPECT_EQ(shown["dtype"], cell["settings"][2]["value"]);
    for (size_t seed = 0; seed < 2; ++seed)
      EXPECT_EQ(shown["errors"][seed], cell["samples"][seed]["max_error"]);
  }
  EXPECT_EQ(data["cells"].size(), drawn);
  EXPECT_EQ(drawn, 23u);
}

TEST(HtmlSweep, HasAChartOfErrorsPerFormatAndAMapPerKernelAndFormatAndThoseOfTheWorstRun) {
  std::map<std::string, int> charts;
  for (const test::Element& e : elements(to_json(test::full_sweep())))
    if (!e.attribute("data-chart").empty()) ++charts[e.attribute("data-chart")];
  EXPECT_EQ(charts["sweep_error"], 2);
  EXPECT_EQ(charts["sweep_heat"], 4);
  EXPECT_EQ(charts["histogram"], 2);
  EXPECT_GE(charts["field"], 3);
}

TEST(HtmlSweep, ASweepOverNamesAloneHasLinearPlaces) {
  const Sweep sweep =
      test::sweep_of({"gla.chunk"}, {{"decay", {"none", "mild", "reset"}}}, 1, [](SweepCell&) {});
  const json data = html::chart_data(to_json(sweep));
  EXPECT_EQ(data["logarithmic"], false);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(data["cells"][i]["x"], i);
  EXPECT_EQ(data["names"], (json{"none", "mild", "reset"}));
}

TEST(HtmlSweep, HostileTextsStayTexts) {
  const json clean = to_json(test::full_sweep());
  const size_t expected = elements(clean).size();
  for (const char* attack :
       {"</script><script>alert(1)</script>", "\" onmouseover=\"x", "<!-- ", "]]>&nosuch;"}) {
    json hostile = clean;
    for (json& cell : hostile["cells"]) {
      for (const char* name : {"kernel", "note", "output"})
        cell[name] = cell[name].get<std::string>() + attack;
      cell["settings"][1]["value"] = cell["settings"][1]["value"].get<std::string>() + attack;
    }
    for (json& kernel : hostile["kernels"]) kernel = kernel.get<std::string>() + attack;
    hostile["backend"] = attack;
    hostile["dimensions"][1]["option"] = attack;
    EXPECT_GT(elements(hostile).size(), expected / 2) << attack;
    for (const test::Element& e : elements(hostile)) EXPECT_EQ(e.attribute("onmouseover"), "");
  }
}

}  // namespace html_sweep_test
}  // namespace assay
