#include "reports/junit.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/reports/well_formed.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace junit_test {

using nlohmann::json;

std::vector<test::Element> elements(const json& result) {
  std::string error;
  std::vector<test::Element> found = test::read_markup(render_junit(result), false, &error);
  EXPECT_EQ(error, "");
  return found;
}

int count(const std::vector<test::Element>& found, std::string_view name) {
  int n = 0;
  for (const test::Element& element : found) n += element.name == name ? 1 : 0;
  return n;
}

TEST(Junit, CountsWhatItLists) {
  for (const json& sample : {test::passed_verification(), test::nan_verification(),
                             test::contradicted_verification(), test::fuzz_run(0), test::fuzz_run(3)}) {
    const std::vector<test::Element> found = elements(sample);
    EXPECT_EQ(found[0].name, "testsuites");
    EXPECT_EQ(found[0].attribute("tests"), std::to_string(count(found, "testcase")));
    EXPECT_EQ(found[0].attribute("failures"), std::to_string(count(found, "failure")));
    int tests = 0, failures = 0;
    for (const test::Element& suite : found) {
      if (suite.name != "testsuite") continue;
      tests += std::stoi(suite.attribute("tests"));
      failures += std::stoi(suite.attribute("failures"));
    }
    EXPECT_EQ(tests, count(found, "testcase"));
    EXPECT_EQ(failures, count(found, "failure"));
  }
}

TEST(Junit, ACleanRunHasOneSuitePerKernelAndOneTestPerPropertyAndNoFailure) {
  const std::vector<test::Element> found = elements(test::fuzz_run(0));
  EXPECT_EQ(count(found, "failure"), 0);
  EXPECT_EQ(count(found, "testsuite"), 3);  // two kernels and the run
  EXPECT_EQ(count(found, "testcase"), 2 * (1 + 2) + 2);
  EXPECT_EQ(count(found, "skipped"), 2) << "a property that no case of the kernel checked is no pass";
}

TEST(Junit, AKernelBelowTheFloorAndARunCutShortFail) {
  json run = test::fuzz_run(0);
  run["min_cases"] = 50;
  run["too_few"] = {{{"kernel", "gla.fused_recurrent"}, {"cases", 3}}};
  run["ended_early"] = "interrupted";
  const std::vector<test::Element> found = elements(run);
  std::vector<std::string> failed;
  for (size_t i = 0; i + 1 < found.size(); ++i)
    if (found[i + 1].name == "failure")
      failed.push_back(found[i].attribute("classname") + ": " + found[i + 1].attribute("type"));
  EXPECT_EQ(failed, (std::vector<std::string>{"gla.fused_recurrent: inconclusive", "run: incomplete"}));
}

TEST(Junit, APropertyFailsInTheSuiteOfItsKernelEvenWhereItsFindingIsPartOfAnother) {
  json run = test::fuzz_run(1);
  run["findings"][0]["properties_failed"].clear();
  run["findings"][0]["also"] = {{{"cause", "property/same-bits-twice"},
                                 {"sentence", "bits"},
                                 {"replay", "assay replay x"},
                                 {"identity", "i"}}};
  bool failed = false;
  const std::vector<test::Element> found = elements(run);
  for (size_t i = 0; i + 1 < found.size(); ++i)
    failed = failed || (found[i].attribute("classname") == "gla.chunk" &&
                        found[i].attribute("name") == "same-bits-twice" && found[i + 1].name == "failure");
  EXPECT_TRUE(failed);
}

TEST(Junit, WhatABaselineKnowsIsSkippedAndDoesNotFail) {
  json run = test::fuzz_run(2);
  for (json& finding : run["findings"]) finding["known"] = true;
  std::vector<test::Element> found = elements(run);
  EXPECT_EQ(found[0].attribute("failures"), "0");
  EXPECT_EQ(count(found, "failure"), 0);
  EXPECT_EQ(count(found, "skipped"), 2 + 1 + 1);  // the findings, their property, what was not checked
  run["findings"][1]["known"] = false;
  found = elements(run);
  EXPECT_EQ(count(found, "skipped"), 1 + 1);
  EXPECT_GT(count(found, "failure"), 0);
}

TEST(Junit, EveryFindingFailsWithItsCauseAndReplayLine) {
  const std::vector<test::Element> found = elements(test::fuzz_run(3));
  int findings = 0, failures_with_replay = 0, property_failures = 0;
  for (const test::Element& element : found) {
    if (element.name == "testcase" && element.attribute("name").starts_with("finding ")) ++findings;
    if (element.name != "failure") continue;
    if (element.attribute("type") == "property") ++property_failures;
    if (element.text.find("assay replay gla.chunk/") != std::string::npos &&
        element.attribute("message").find("exp-overflow") != std::string::npos)
      ++failures_with_replay;
  }
  EXPECT_EQ(findings, 3);
  EXPECT_EQ(failures_with_replay, 3 + 1);  // and the property of that kernel
  EXPECT_EQ(property_failures, 1);
}

TEST(Junit, AFindingThatNamesNoPropertyFailsTheBound) {
  json run = test::fuzz_run(1);
  run["findings"][0]["properties_failed"].clear();
  const std::vector<test::Element> found = elements(run);
  for (size_t i = 0; i + 1 < found.size(); ++i) {
    if (found[i].attribute("classname") != "gla.chunk" || found[i].attribute("name").starts_with("at least"))
      continue;
    const bool fails = found[i + 1].name == "failure";
    EXPECT_EQ(fails, found[i].attribute("name") != "same-bits-twice") << found[i].attribute("name");
  }
}

TEST(Junit, UndecidedCasesFail) {
  json run = test::fuzz_run(0);
  run["undecided"] = 2;
  EXPECT_EQ(count(elements(run), "failure"), 1);
}

TEST(Junit, AFindingOfAnUnlistedKernelIsNotLost) {
  json run = test::fuzz_run(1);
  run["findings"][0]["kernel"] = "gla.chunk@S1";
  int suites = 0;
  for (const test::Element& element : elements(run))
    suites += element.name == "testsuite" && element.attribute("name") == "gla.chunk@S1" ? 1 : 0;
  EXPECT_EQ(suites, 1);
}

TEST(Junit, AVerificationOutOfDomainFailsThoughNoElementDoes) {
  json v = test::passed_verification();
  v["verdict"] = "domain";
  v["domain"] = {"g[b=0,t=3,h=0,k=1] = 0.5: above 0"};
  const std::vector<test::Element> found = elements(v);
  ASSERT_EQ(count(found, "failure"), 1);
  for (const test::Element& element : found)
    if (element.name == "failure")
      EXPECT_EQ(element.attribute("message"), "outside the domain: g[b=0,t=3,h=0,k=1] = 0.5: above 0");
}

TEST(Junit, AnOutputOfTheFileIsATestOfItsOwn) {
  std::vector<std::string> failed;
  const std::vector<test::Element> found = elements(test::contradicted_verification());
  for (size_t i = 0; i + 1 < found.size(); ++i)
    if (found[i].name == "testcase" && found[i + 1].name == "failure")
      failed.push_back(found[i].attribute("name"));
  ASSERT_EQ(failed.size(), 2u) << "the output, and the run";
  EXPECT_EQ(failed[0], "o in the inputs&#39; file");
  for (const test::Element& e : found)
    if (e.name == "failure") {
      EXPECT_NE(e.text.find("in the file o[b=0,t=2,h=0,v=1]: got 0.375"), std::string::npos) << e.text;
    }
}

TEST(Junit, HostileTextsStayTexts) {
  for (const char* attack : {"\"/><failure/>", "]]><x>", "&amp", "\x01\xff", "</testsuite>"}) {
    json sample = test::fuzz_run(2);
    for (json& finding : sample["findings"])
      finding["properties_failed"] = {"a property that the run does not list"};
    EXPECT_EQ(elements(test::with_hostile_texts(sample, attack)).size(), elements(sample).size()) << attack;
  }
}

TEST(Junit, RefusesWhatIsNoResult) {
  EXPECT_THROW(render_junit(json::object()), BadInput);
}

}  // namespace junit_test
}  // namespace assay
