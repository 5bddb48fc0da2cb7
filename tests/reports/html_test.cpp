#include "reports/html.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "reports/html_sections.h"
#include "reports/page_text.h"
#include "src/base/numerics/bad_input.h"
#include "src/result/fuzz_run.h"
#include "src/result/verification.h"
#include "tests/reports/page_elements.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace html_test {

using nlohmann::json;

using test::elements;
using test::own_text;

json embedded(const std::string& page) {
  for (const test::Element& element : elements(page)) {
    if (element.attribute("id") == "result") return json::parse(element.text);
  }
  ADD_FAILURE() << "no embedded result";
  return nullptr;
}

std::vector<json> samples() {
  return {test::passed_verification(), test::nan_verification(), test::fuzz_run(0), test::fuzz_run(3)};
}

/// A result from before there was a field.
TEST(Html, AFieldThatAnOlderResultLacksHasItsDefault) {
  json older = test::passed_verification();
  older["case"].erase("rates");
  EXPECT_EQ(verification_from_json(older).case_.rates, 2);
}

TEST(Html, TheSamplesAreResultsAsAssayWritesThem) {
  for (json sample : samples()) {
    json again = sample["kind"] == "fuzz" ? to_json(fuzz_run_from_json(sample))
                                          : to_json(verification_from_json(sample));
    again["tool"] = sample["tool"];
    EXPECT_EQ(again, sample);
  }
}

TEST(Html, IsWellFormedForEverySample) {
  for (const json& sample : samples()) EXPECT_GT(elements(own_text(sample)).size(), 50u);
}

TEST(Html, LoadsNothing) {
  for (const json& sample : samples()) {
    const std::string page = own_text(sample);
    for (const char* loader : {"http:", "https:", "src=", "@import", "url(", "<link", "<iframe", "<img",
                               "<object", "fetch(", "sourceMappingURL"}) {
      EXPECT_EQ(page.find(loader), std::string::npos) << loader;
    }
    EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
    for (const test::Element& element : elements(page)) {
      if (const std::string link = element.attribute("href"); !link.empty()) {
        EXPECT_EQ(link[0], '#') << link;
      }
    }
  }
  EXPECT_EQ(text::vega().find("sourceMappingURL"), std::string_view::npos);
}

TEST(Html, NothingCarriedInsideEndsItsScriptEarly) {
  for (const std::string_view part : {text::vega(), text::charts()}) {
    EXPECT_EQ(part.find("</script"), std::string_view::npos);
    EXPECT_EQ(part.find("<!--"), std::string_view::npos);
  }
  EXPECT_EQ(text::style().find("</"), std::string_view::npos);
  for (const char* module :
       {"vega-util", "vega-dataflow", "vega-parser", "vega-view", "vega-interpreter", "vega-selections"}) {
    EXPECT_NE(text::vega().find(std::string("vega_sources[\"") + module + "\"]"), std::string_view::npos)
        << module;
  }
}

TEST(Html, HostileTextsStayTexts) {
  const std::string attacks[] = {"</script><script>alert(1)</script>",
                                 "<img src=x onerror=alert(1)>",
                                 "\" onmouseover=\"alert(1)",
                                 "' autofocus onfocus='x",
                                 "<!-- ",
                                 "]]>&nosuch;",
                                 "\xff\xc0<\x01"};
  for (const json& sample : samples()) {
    const std::vector<test::Element> clean = elements(own_text(sample));
    for (const std::string& attack : attacks) {
      const std::vector<test::Element> attacked =
          elements(own_text(test::with_hostile_texts(sample, attack)));
      // The same elements with the same attributes: nothing has become markup.
      ASSERT_EQ(attacked.size(), clean.size()) << attack;
      for (size_t i = 0; i < clean.size(); ++i) {
        ASSERT_EQ(attacked[i].name, clean[i].name) << attack;
        ASSERT_EQ(attacked[i].attributes.size(), clean[i].attributes.size()) << attack;
      }
    }
  }
}

TEST(Html, AHostileVerdictStaysAText) {
  json sample = test::passed_verification();
  sample["verdict"] = "\"><script>x</script>";
  const std::vector<test::Element> found = elements(own_text(sample));
  EXPECT_EQ(
      std::count_if(found.begin(), found.end(), [](const auto& element) { return element.name == "script"; }),
      3);
}

/// Every number that a reader of the page must find, exactly.
void collect_numbers(const json& value, std::set<std::string>* numbers) {
  for (const char* name : {"got",
                           "expected",
                           "expected_rounded",
                           "absolute",
                           "relative",
                           "ulp",
                           "bound",
                           "ratio",
                           "max_ratio",
                           "max_tightness",
                           "max_relative_bound",
                           "max_enclosure",
                           "violation",
                           "nonfinite",
                           "elements",
                           "cases",
                           "passed",
                           "checked",
                           "failed",
                           "seconds",
                           "value",
                           "result",
                           "min",
                           "max",
                           "score",
                           "seconds_kernel"}) {
    if (value.is_object() && value.contains(name) && !value[name].is_array() && !value.contains("feature"))
      numbers->insert(value[name].is_string() ? value[name].get<std::string>() : value[name].dump());
  }
  if (value.is_structured()) {
    for (const json& part : value) collect_numbers(part, numbers);
  }
}

TEST(Html, EveryNumberOfTheResultStandsOnThePageExactly) {
  for (const json& sample : samples()) {
    std::set<std::string> expected, shown;
    collect_numbers(sample, &expected);
    std::set<double> values;
    for (const test::Element& element : elements(own_text(sample))) {
      if (element.name != "data") continue;
      shown.insert(element.attribute("value"));
      values.insert(std::strtod(element.attribute("value").c_str(), nullptr));
    }
    ASSERT_GE(expected.size(), 8u);
    for (const std::string& number : expected) {
      const double value = std::strtod(number.c_str(), nullptr);
      EXPECT_TRUE(shown.count(number) > 0 || values.count(value) > 0) << number;
    }
  }
}

TEST(Html, ChartsPointAtTheNumbersOfTheResult) {
  for (const json& sample : samples()) {
    const std::string page = own_text(sample);
    const json data = embedded(page);
    int charts = 0;
    for (const test::Element& element : elements(page)) {
      const std::string kind = element.attribute("data-chart");
      if (kind.empty()) continue;
      ++charts;
      const json::json_pointer pointer(element.attribute("data-at"));
      ASSERT_TRUE(data.contains(pointer)) << pointer.to_string();
      if (kind == "histogram") {
        EXPECT_EQ(data[pointer]["histogram"], sample[pointer]["histogram"]);
      }
      if (kind == "field") {
        EXPECT_EQ(data[pointer]["max_ratio"], sample[pointer]["max_ratio"]);
      }
      if (kind == "tightness") {
        EXPECT_EQ(data[pointer], sample[pointer]);
      }
    }
    EXPECT_GE(charts, 2);
  }
}

TEST(Html, StaysUnderThreeMegabytes) {
  EXPECT_LT(render_html(test::passed_verification(1 << 20)).size(), 3u << 20);
  EXPECT_LT(render_html(test::fuzz_run(500)).size(), 3u << 20);
}

TEST(Html, RefusesWhatIsNoResult) {
  for (const json& document : {json(), json::object(), json{{"kind", "sweep"}},
                               json{{"kind", "verification"}}, json{{"kind", "fuzz"}}}) {
    EXPECT_THROW(render_html(document), BadInput) << document;
  }
}

TEST(Html, TheReaderOfTheseTestsSeesBrokenMarkup) {
  for (const char* broken : {"<p>a", "<p><b></p></b>", "<a b=c\"d\">x</p>", "<p>&nosuch;</p>", "<p>a > b</p>",
                             "<p>\x01</p>", "<p a=\"1\" a=\"2\"></p>"}) {
    std::string error;
    test::read_markup(broken, false, &error);
    EXPECT_NE(error, "") << broken;
  }
}

}  // namespace html_test
}  // namespace assay
