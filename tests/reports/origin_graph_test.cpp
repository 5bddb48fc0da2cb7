#include "reports/origin_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/reports/well_formed.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace {

using nlohmann::json;

struct DrawnBox {
  std::string kind, title;
  double x = 0, y = 0, width = 0;
};

struct Graph {
  std::vector<DrawnBox> boxes;
  int arrows = 0;
};

Graph read(const json& origin) {
  std::string error;
  const auto elements = test::read_markup(html::origin_graph(origin), false, &error);
  EXPECT_EQ(error, "");
  Graph graph;
  const auto number = [](const test::Element& e, const char* name) {
    return std::strtod(e.attribute(name).c_str(), nullptr);
  };
  for (size_t i = 0; i < elements.size(); ++i) {
    graph.arrows += elements[i].attribute("class") == "arrow";
    if (!elements[i].attribute("class").starts_with("box ")) continue;
    const test::Element& rect = elements.at(i + 2);
    graph.boxes.push_back({elements[i].attribute("class").substr(4), elements.at(i + 1).text,
                           number(rect, "x"), number(rect, "y"), number(rect, "width")});
  }
  return graph;
}

json sample() {
  return test::nan_verification()["origin"];
}

TEST(OriginGraph, GoesDownFromTheInputThroughTheOriginAndEveryLineToTheOutput) {
  const Graph graph = read(sample());
  std::vector<std::string> kinds;
  for (const DrawnBox& box : graph.boxes) kinds.push_back(box.kind);
  // One input and "more", the infinity's place, the origin; the chain's first link is the origin again.
  EXPECT_EQ(kinds, (std::vector<std::string>{"input", "input", "link", "origin", "link", "output"}));
  EXPECT_EQ(graph.boxes[0].title, "g[b=0,t=16,h=0,k=3]: = -90.5");
  EXPECT_NE(graph.boxes[3].title.find("exp-overflow at kernels/gla/chunk.cu:142"), std::string::npos);
  EXPECT_NE(graph.boxes[3].title.find("-&gt; inf"), std::string::npos);
  EXPECT_NE(graph.boxes[5].title.find("o[b=0,t=16,h=0,v=3]"), std::string::npos);
  for (size_t i = 2; i < graph.boxes.size(); ++i) EXPECT_GT(graph.boxes[i].y, graph.boxes[i - 1].y);
  EXPECT_EQ(graph.boxes[0].y, graph.boxes[1].y);
  EXPECT_EQ(graph.arrows, 5);  // one from every box but the output
}

TEST(OriginGraph, InputsStandSideBySideAndThoseLeftOutAreCounted) {
  json origin = sample();
  for (int i = 0; i < 9; ++i) origin["inputs"].push_back(origin["inputs"][0]);
  const Graph graph = read(origin);
  ASSERT_EQ(std::count_if(graph.boxes.begin(), graph.boxes.end(), [](auto& b) { return b.kind == "input"; }),
            4);
  EXPECT_EQ(graph.boxes[3].title, "7 more: and others");
  for (int i = 1; i < 4; ++i) EXPECT_GT(graph.boxes[i].x, graph.boxes[i - 1].x + graph.boxes[i - 1].width);
}

TEST(OriginGraph, WithoutInputsAndChainItIsTheOriginAndTheOutput) {
  json origin = sample();
  origin["inputs"] = json::array();
  origin["inputs_truncated"] = false;
  origin["chain"] = json::array();
  origin["infinity_made_at"] = nullptr;
  const Graph graph = read(origin);
  ASSERT_EQ(graph.boxes.size(), 2u);
  EXPECT_EQ(graph.boxes[0].kind, "origin");
  EXPECT_EQ(graph.arrows, 1);
}

TEST(OriginGraph, AChainThatBeginsElsewhereIsDrawnWhole) {
  json origin = sample();
  origin["chain"][0]["where"]["ptx_line"] = 904;
  EXPECT_EQ(read(origin).boxes.size(), read(sample()).boxes.size() + 1);
}

TEST(OriginGraph, ALongTextIsCutInTheBoxAndWholeInItsTitle) {
  json origin = sample();
  const std::string path(400, 'p');
  origin["where"]["file"] = path;
  const std::string svg = html::origin_graph(origin);
  EXPECT_NE(read(origin).boxes[3].title.find(path), std::string::npos);
  size_t whole = 0;
  for (size_t at = 0; (at = svg.find(path, at)) != svg.npos; at += path.size()) ++whole;
  EXPECT_EQ(whole, 1u);
}

TEST(OriginGraph, HostileTextsStayTexts) {
  EXPECT_EQ(read(test::with_hostile_texts(sample(), "</title><script>")).boxes.size(),
            read(sample()).boxes.size());
}

}  // namespace
}  // namespace assay
