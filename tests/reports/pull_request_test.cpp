#include "reports/pull_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace {

using nlohmann::json;

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST(PullRequest, APassIsSaidInTwoLines) {
  const std::string text = render_pull_request(test::fuzz_run(0));
  EXPECT_TRUE(text.starts_with("### assay: no finding\n\n1200 cases of 2 kernels on vm sm")) << text;
  EXPECT_EQ(count(text, "<details>"), 0u);
  EXPECT_TRUE(render_pull_request(test::passed_verification()).starts_with("### assay: no finding"));
}

TEST(PullRequest, EveryFindingHasItsLineAndItsReplayLineFolded) {
  const std::string text = render_pull_request(test::fuzz_run(3));
  EXPECT_TRUE(text.starts_with("### assay: 3 findings\n")) << text;
  EXPECT_EQ(count(text, "<code>kernels/gla/chunk.cu:142</code>"), 3u);
  EXPECT_EQ(count(text, "<details>"), 3u);
  EXPECT_EQ(count(text, "</details>"), 3u);
  EXPECT_EQ(count(text, "```\nassay replay gla.chunk/"), 3u);
}

TEST(PullRequest, NewKnownAndGoneAreToldApart) {
  json run = test::fuzz_run(2);
  run["findings"][0]["known"] = true;
  run["findings"][1]["known"] = false;
  run["baseline"] = {
      {"source", "b.json"},
      {"gone", {{{"kernel", "gla.chunk"}, {"cause", "hang"}, {"token", "t"}, {"outcome", "pass"}}}}};
  const std::string text = render_pull_request(run);
  EXPECT_TRUE(text.starts_with("### assay: 1 new finding, 1 known\n")) << text;
  EXPECT_EQ(count(text, "| known | "), 1u);
  EXPECT_EQ(count(text, "| **new** | "), 1u);
  EXPECT_NE(text.find("Gone since the baseline:\n\n- <code>gla.chunk</code> hang (pass)"), std::string::npos)
      << text;
  run["findings"][1]["known"] = true;
  EXPECT_TRUE(render_pull_request(run).starts_with("### assay: no new finding, 2 known\n"));
}

TEST(PullRequest, WhatDoesNotFitIsCounted) {
  for (const int findings : {60, 400}) {
    json run = test::fuzz_run(findings);
    for (json& finding : run["findings"]) finding["replay"] = std::string(1500, 'x');
    const std::string text = render_pull_request(run);
    EXPECT_LE(text.size(), kCommentBytes);
    EXPECT_NE(text.find("more | |"), std::string::npos);
    EXPECT_NE(text.find(" of " + std::to_string(findings) + " findings are shown in full"),
              std::string::npos);
    EXPECT_EQ(count(text, "<details>"), count(text, "</details>"));
  }
}

TEST(PullRequest, HostileTextsStayTexts) {
  json v = test::nan_verification();
  v["kernel"] = "</code></details><script>|\n`", v["replay"] = "x\n```\n</details>";
  v["cause"] = "</summary><img src=x>", v["origin"]["sentence"] = "<b> | `code` </details>";
  const std::string text = render_pull_request(v);
  for (const char* part : {"<script", "<img", "<b>"}) EXPECT_EQ(text.find(part), std::string::npos) << text;
  EXPECT_EQ(count(text, "<details>"), 1u);
  EXPECT_NE(text.find("\nx ``` </details>\n`````"), std::string::npos) << text;
}

TEST(PullRequest, ReplayLinesOfAFileSayThatItIsBuiltFirst) {
  json v = test::nan_verification();
  EXPECT_EQ(render_pull_request(v).find("Build the PTX"), std::string::npos);
  v["replay"] = "assay replay --ptx build/mine.ptx --plan plan.json mine/T3";
  EXPECT_EQ(count(render_pull_request(v), "Build the PTX that a replay line names"), 1u);
}

TEST(PullRequest, RefusesWhatIsNoResult) {
  EXPECT_THROW(render_pull_request(json::array()), BadInput);
}

}  // namespace
}  // namespace assay
