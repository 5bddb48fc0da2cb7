#include "reports/markdown.h"

#include <gtest/gtest.h>

#include <sstream>

#include "src/base/numerics/bad_input.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace {

using nlohmann::json;

/// Cells of a table's line: bars that no backslash escapes, less one.
int cells(const std::string& line) {
  int bars = 0;
  for (size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
  return bars - 1;
}

void expect_even_tables(const std::string& text) {
  std::istringstream lines(text);
  int width = 0, tables = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool table = line.starts_with('|');
    if (table && width == 0) ++tables;
    if (table && width > 0) {
      EXPECT_EQ(cells(line), width) << line;
    }
    width = table ? cells(line) : 0;
  }
  EXPECT_GT(tables, 0);
}

TEST(Markdown, TablesHaveAsManyCellsInEveryRow) {
  for (const json& sample : {test::passed_verification(), test::nan_verification(), test::fuzz_run(2)}) {
    expect_even_tables(render_markdown(sample));
    for (const char* attack : {"|", "a|b", "\n| x |\n", "```", "<script>", "\\"}) {
      SCOPED_TRACE(attack);
      const std::string text = render_markdown(test::with_hostile_texts(sample, attack));
      if (attack != std::string("\\")) expect_even_tables(text);
      EXPECT_EQ(text.find("\n| x |\n"), std::string::npos);
    }
  }
}

TEST(Markdown, OfAnOutputWithoutAFiniteBoundNoErrorIsAShareOfOne) {
  nlohmann::json v = test::passed_verification();
  nlohmann::json& output = v["outputs"][0];
  output["by_formula"] = output["elements"];
  const std::string text = render_markdown(v);
  EXPECT_NE(text.find("have no finite bound: the formula alone decides them."), text.npos) << text;
  EXPECT_NE(text.find("| 0 | - | - | - |"), text.npos) << text;
}

TEST(Markdown, SaysTheVerdictTheOriginAndHowToReplay) {
  const std::string text = render_markdown(test::nan_verification());
  for (const char* part :
       {"finding", "exp-overflow", "`kernels/gla/chunk.cu:142, gla_chunk_output, PTX line 903`", "0x1.ap-1",
        "-88.7", "    assay replay gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Markdown, SaysWhatStandsBehindAnElementWhichLinesRoundAndHowNearTheEdgesAre) {
  const std::string text = render_markdown(test::nan_verification());
  for (const char* part : {"**Behind `o[b=0,t=16,h=0,v=3]`**: 123456 instruction instances",
                           "percent of the errors", "within 1.5 of overflow", "binades left"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Markdown, SaysWhatLogDecaysAccumulate) {
  const std::string page = render_markdown(test::passed_verification());
  EXPECT_NE(
      page.find("over the 4096 steps to `w[b=0,t=4095,h=0,k=3]`: -1244 nats, off by 0.8125 (bound 6.25)"),
      page.npos)
      << page;
}

TEST(Markdown, ListsEveryFindingPropertyAndTightnessRow) {
  const std::string text = render_markdown(test::fuzz_run(4));
  size_t findings = 0;
  for (size_t at = 0; (at = text.find("## Finding:", at)) != std::string::npos; ++at) ++findings;
  EXPECT_EQ(findings, 4u);
  for (const char* part : {"within-bound", "same-bits-twice", "0.4123", "K != V", "18446744073709551615"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(Markdown, RefusesWhatIsNoResult) {
  EXPECT_THROW(render_markdown(json{{"kind", "x"}}), BadInput);
}

}  // namespace
}  // namespace assay
