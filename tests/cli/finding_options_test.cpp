// What a run with findings gives to continuous integration: exit status, annotations, comment, baseline.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.h"

namespace assay {
namespace {

/// A defect that leaves an output unwritten.
constexpr const char* kRun = "fuzz hgrn.fused_recurrent@U1 --backend vm --cases 10 --seed 1 --db '' ";

nlohmann::json findings_in(const ScratchFolder& here, const std::string& file) {
  return nlohmann::json::parse(read_file(here / file)).at("findings");
}

TEST(FindingOptionsCampaign, AFindingFailsTheRunUnlessItsKindIsLeftOut) {
  const ScratchFolder here;
  const Ran all = run_assay(kRun + std::string("--json x.json"), here);
  ASSERT_EQ(all.status, 1) << all.err;
  std::set<std::string> kinds;
  for (const nlohmann::json& finding : findings_in(here, "x.json")) {
    const std::string cause = finding.at("cause");
    kinds.insert(cause.substr(0, cause.find('/')));
    if (!finding.at("properties_failed").empty()) kinds.insert("property");
  }
  ASSERT_TRUE(kinds.contains("nonfinite"));
  const struct {
    const char* kinds;
    bool fails;
  } rows[] = {{"nonfinite", true},
              {"violation,nonfinite", true},
              {"all", true},
              {"property", kinds.contains("property")},
              {"violation,trap", false},
              {"none", false}};
  for (const auto& row : rows) {
    const Ran ran = run_assay(kRun + std::string("--json y.json --fail-on ") + row.kinds, here);
    EXPECT_EQ(ran.status, row.fails ? 1 : 0) << row.kinds << ran.err;
    EXPECT_EQ(findings_in(here, "y.json").size(), findings_in(here, "x.json").size())
        << row.kinds << ": what does not fail the run is found all the same";
  }
}

TEST(FindingOptionsCampaign, AKnownFindingIsListedAndDoesNotFailTheRun) {
  const ScratchFolder here;
  ASSERT_EQ(run_assay(kRun + std::string("--json known.json"), here).status, 1);
  const Ran again = run_assay(kRun + std::string("--json x.json --baseline known.json"), here);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find("known"), std::string::npos) << again.out;
  EXPECT_FALSE(findings_in(here, "x.json").empty());

  ASSERT_EQ(
      run_assay("fuzz hgrn.fused_recurrent --backend vm --cases 5 --seed 1 --db '' --json clean.json", here)
          .status,
      0);
  EXPECT_EQ(run_assay(kRun + std::string("--baseline clean.json"), here).status, 1)
      << "a baseline without this finding hides nothing";
}

TEST(FindingOptions, AnnotationsAndCommentPointAtTheKernelsLineAndReplay) {
  const ScratchFolder here;
  const Ran ran = run_assay(kRun + std::string("--json x.json --annotations github --comment c.md"), here);
  ASSERT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("::error file=kernels/hgrn/"), std::string::npos) << ran.out;
  const std::string token = findings_in(here, "x.json").front().at("token");
  EXPECT_NE(read_file(here / "c.md").find(token), std::string::npos) << token;
  EXPECT_EQ(run_assay("replay '" + token + "' --backend vm", here).status, 1);
}

TEST(FindingOptions, ACompilerThatFailsIsNoCaseThatTheKernelRefuses) {
  const ScratchFolder here;
  const Ran ran = run_assay(kRun, here, "ASSAY_NVCC=/nowhere/nvcc ASSAY_CACHE=cache");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("could not compile hgrn/fused_recurrent"), std::string::npos) << ran.err;
}

TEST(FindingOptions, AFileAtItsSizeLimitIsSaidAndNoPass) {
  const ScratchFolder here;
  const std::string verify = "verify hgrn.fused_recurrent -T 16 -V 8 --backend vm";
  ASSERT_EQ(run_assay(verify, here).status, 0);  // compiles the kernel, whose files are larger
  const Ran ran = run_assay(verify + " --json x.json", here, R"(bash -c 'ulimit -f 4; exec "$0" "$@"')");
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  EXPECT_NE(ran.err.find("x.json"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace assay
