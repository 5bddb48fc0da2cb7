#include "reports/svg_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "tests/reports/well_formed.h"

namespace assay {
namespace {

/// Texts without the line breaks between elements.
std::vector<test::Element> read(const std::string& svg) {
  std::string error;
  std::vector<test::Element> elements = test::read_markup(svg, false, &error);
  EXPECT_EQ(error, "");
  for (test::Element& e : elements) std::erase(e.text, '\n');
  return elements;
}

double number(const test::Element& element, const char* name) {
  return std::strtod(element.attribute(name).c_str(), nullptr);
}

/// Where each point's mark stands, by the words of its title.
std::map<std::string, std::pair<double, double>> marks(const std::string& svg) {
  std::map<std::string, std::pair<double, double>> found;
  const auto elements = read(svg);
  for (size_t i = 0; i + 1 < elements.size(); ++i)
    if (elements[i].name == "circle")
      found[elements[i + 1].text] = {number(elements[i], "cx"), number(elements[i], "cy")};
  return found;
}

TEST(SvgChart, PointsStandAtTheLogarithmsOfTheirNumbers) {
  const auto at =
      marks(svg_lines("t", "length", "absolute", {{"a", {{64, 1e-3}, {128, 1e-2}, {256, 1e-4}}}}));
  ASSERT_EQ(at.size(), 3u);
  const auto [x0, y0] = at.at("a: length 64, 0.001");
  const auto [x1, y1] = at.at("a: length 128, 0.01");
  const auto [x2, y2] = at.at("a: length 256, 0.0001");
  EXPECT_NEAR(x1 - x0, x2 - x1, 0.11);  // places are written to a tenth
  EXPECT_NEAR(y0 - y1, y2 - y0, 0.11);
  EXPECT_LT(x0, x1);
  EXPECT_LT(y1, y0);  // up is larger
}

TEST(SvgChart, NamedPlacesStandEvenly) {
  const std::string svg =
      svg_lines("t", "run", "ratio", {{"a", {{1, 1}, {2, 10}, {4, 100}}}}, {"one", "two", "three", "four"});
  const auto at = marks(svg);
  const double x1 = at.at("a: run 1, 1").first, x2 = at.at("a: run 2, 10").first,
               x4 = at.at("a: run 4, 100").first;
  EXPECT_NEAR(x4 - x2, 2 * (x2 - x1), 0.21);
  for (const char* name : {">one<", ">two<", ">three<", ">four<"})
    EXPECT_NE(svg.find(name), svg.npos) << name;
}

TEST(SvgChart, EverySeriesHasItsLineItsNameAndItsStroke) {
  int paths = 0, dashed = 0;
  std::string words;
  for (const test::Element& e :
       read(svg_lines("t", "x", "y", {{"error", {{1, 1}, {2, 3}}}, {"bound", {{1, 5}, {2, 9}}, true}}))) {
    paths += e.name == "path";
    dashed += e.name == "path" && !e.attribute("stroke-dasharray").empty();
    words += e.text + ";";
  }
  EXPECT_EQ(paths, 2);
  EXPECT_EQ(dashed, 1);
  EXPECT_NE(words.find("error;"), words.npos);
  EXPECT_NE(words.find("bound;"), words.npos);
}

TEST(SvgChart, WhatHasNoLogarithmIsLeftOutAndAPictureOfNothingSaysSo) {
  EXPECT_EQ(
      marks(svg_lines("t", "x", "y", {{"a", {{1, 1}, {2, 0}, {4, HUGE_VAL}, {0, 1}, {8, NAN}}}})).size(), 1u);
  EXPECT_NE(svg_lines("t", "x", "y", {{"a", {{1, 0}}}}).find("no positive numbers"), std::string::npos);
}

TEST(SvgChart, APointAloneIsSeen) {
  const auto at = marks(svg_lines("t", "x", "y", {{"a", {{64, 0.5}}}}));
  ASSERT_EQ(at.size(), 1u);
  EXPECT_TRUE(std::isfinite(at.begin()->second.first));
}

TEST(SvgChart, AMapHoldsItsNumbersInTheirPlacesAndMarksWhatIsAboveOne) {
  const std::string svg =
      svg_map("t", {"64", "128"}, {"none", "reset"},
              {{0, 0, 0.25}, {1, 0, 0.5}, {0, 1, 1.5}, {1, 1, HUGE_VAL}, {1, 1, 0.125, true}});
  std::vector<test::Element> boxes;
  std::vector<std::string> exact;
  const auto elements = read(svg);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].name == "rect" && elements[i].attribute("rx") == "2") boxes.push_back(elements[i]);
    if (elements[i].name == "text" && i + 1 < elements.size() && elements[i + 1].name == "title")
      exact.push_back(elements[i + 1].text);
  }
  ASSERT_EQ(boxes.size(), 5u);
  EXPECT_EQ(exact, (std::vector<std::string>{"0.25", "0.5", "1.5", "inf", "0.125"}));
  EXPECT_LT(number(boxes[0], "x"), number(boxes[1], "x"));
  EXPECT_EQ(number(boxes[0], "y"), number(boxes[1], "y"));
  EXPECT_LT(number(boxes[0], "y"), number(boxes[2], "y"));
  EXPECT_LT(number(boxes[0], "fill-opacity"), number(boxes[1], "fill-opacity"));
  EXPECT_EQ(boxes[0].attribute("fill"), boxes[1].attribute("fill"));
  for (const size_t bad : {2u, 3u, 4u})
    EXPECT_NE(boxes[bad].attribute("fill"), boxes[0].attribute("fill")) << bad;
}

TEST(SvgChart, HostileNamesStayTexts) {
  const std::string attack = "</title><script>\"&'";
  for (const test::Element& e : read(svg_lines(attack, attack, attack, {{attack, {{1, 1}}}})))
    EXPECT_NE(e.name, "script");
  for (const test::Element& e : read(svg_map(attack, {attack}, {attack}, {{0, 0, 1}})))
    EXPECT_NE(e.name, "script");
}

}  // namespace
}  // namespace assay
