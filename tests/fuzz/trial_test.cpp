#include "fuzz/trial.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "src/base/numerics/abandon.h"
#include "src/base/numerics/bad_input.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace {

Trial trial_of(const Kernel& kernel, const std::string& token) {
  Trial trial;
  trial.kernel = &kernel;
  trial.case_ = parse_token(token);
  trial.diagnose = false;
  for (const Property& property : properties()) trial.properties.push_back(&property);
  return trial;
}

TEST(Trial, EveryPropertyIsDueInAboutItsShareOfTheCasesAndWithinBoundAlways) {
  const Case c = parse_token("gla.subject/B1/T50/H1/K4/V3");
  std::vector<int64_t> due(properties().size());
  for (int64_t i = 0; i < 4000; ++i)
    for (const Property* property : properties_due(c, 5, i))
      ++due[static_cast<size_t>(property - properties().data())];
  for (size_t p = 0; p < due.size(); ++p) {
    if (properties()[p].share == kByCost) continue;
    const double share = properties()[p].share, got = static_cast<double>(due[p]) / 4000;
    // Five standard deviations of a binomial share.
    EXPECT_NEAR(got, share, 5 * std::sqrt(share * (1 - share) / 4000)) << properties()[p].name;
  }
}

TEST(Trial, PropertiesOfTheCheckingMachineAreDueTogetherWhereTheyCostLittle) {
  const auto checked = [](const char* token) {
    int64_t races = 0, wraps = 0;
    for (int64_t i = 0; i < 4000; ++i)
      for (const Property* property : properties_due(parse_token(token), 5, i)) {
        races += property->name == "no-races";
        wraps += property->name == "no-index-wrap";
      }
    EXPECT_EQ(races, wraps) << token;
    return races;
  };
  EXPECT_EQ(checked("gla.subject/B1/T1/H1/K4/V3"), 4000);
  const int64_t seldom = checked("gla.subject/B1/T100/H1/K64/V64");
  EXPECT_LT(seldom, 2000);
  EXPECT_GT(seldom, 0);
}

TEST(Trial, ExpensiveCasesCheckPropertiesInAQuarterOfTheirShare) {
  const Case c = parse_token("gla.subject/B1/T1000/H1/K128/V128");
  int64_t causality = 0;
  for (int64_t i = 0; i < 4000; ++i)
    for (const Property* property : properties_due(c, 5, i)) causality += property->name == "causality";
  // Five standard deviations of a binomial share, as above.
  const double share = find_property("causality").share / 4;
  EXPECT_NEAR(static_cast<double>(causality) / 4000, share, 5 * std::sqrt(share * (1 - share) / 4000));
}

TEST(Trial, AFaultOfTheRunAndAFaultOfAPropertyKeepTheirOwnCauses) {
  const Kernel kernel = test::subject_kernel();
  const char* token = "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30";
  test::SubjectBackend dropped("term dropped"), lengthy("length matters");
  const TrialReport wrong = run_trial(trial_of(kernel, token), dropped, {});
  EXPECT_EQ(wrong.verification.cause.rfind("violation/", 0), 0U) << wrong.verification.cause;
  EXPECT_EQ(wrong.property, nullptr);
  const TrialReport odd = run_trial(trial_of(kernel, token), lengthy, {});
  ASSERT_NE(odd.property, nullptr);
  EXPECT_EQ(odd.property->name, "split-and-resume");
  const Case longer = parse_token("gla.subject/B1/T60/H1/K2/V1/fp32/g-fp32/mild/s45");
  EXPECT_TRUE(with_same_cause(odd, longer, lengthy, {}).has_value());
  EXPECT_FALSE(
      with_same_cause(odd, parse_token("gla.subject/B1/T30/H1/K2/V1/fp32/g-fp32/mild/s3"), lengthy, {}));
  EXPECT_FALSE(with_same_cause(odd, longer, dropped, {})) << "another fault";
}

TEST(Trial, PropertiesCompareWithTheRunThatWasVerified) {
  const Kernel kernel = test::subject_kernel();
  Trial trial = trial_of(kernel, "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30");
  trial.properties = {&find_property("memory-recycled"), &find_property("same-bits-twice")};
  test::SubjectBackend backend;
  const TrialReport report = run_trial(trial, backend, {});
  EXPECT_EQ(report.outcomes.size(), 2U);
  EXPECT_EQ(backend.runs(), 3) << "one each, and the one that was verified";
}

/// As long programs do it, asks whether anyone still wants its result.
struct EndlessBackend : test::SubjectBackend {
  Outcome run(const Program&, const TensorMap&) override {
    for (int i = 0; i < 6000; ++i) {
      require_wanted();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    throw BadInput("nobody gave it up in a minute");
  }
};

TEST(Trial, ASmallerCaseIsGivenUpWhereTheTimeThatIsLeftIsOver) {
  const Kernel kernel = test::subject_kernel();
  const char* token = "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30";
  test::SubjectBackend dropped("term dropped");
  const TrialReport wrong = run_trial(trial_of(kernel, token), dropped, {});
  EndlessBackend endless;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(with_same_cause(wrong, parse_token(token), endless, {}, 0.1).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

TEST(Trial, AnExplanationIsGivenUpFiveSecondsAfterTheTime) {
  const Kernel kernel = test::subject_kernel();
  const char* token = "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30";
  test::SubjectBackend dropped("term dropped");
  Trial trial = trial_of(kernel, token);
  trial.diagnose = true;
  const TrialReport wrong = run_trial(trial, dropped, {});
  EndlessBackend endless;
  const auto began = std::chrono::steady_clock::now();
  const Verification as_it_was = fully_traced(wrong, wrong.verification, endless, {}, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  EXPECT_EQ(as_it_was.cause, wrong.verification.cause);
  EXPECT_EQ(as_it_was.unexplained, "it was given up after 6 s; its replay explains it");
}

TEST(Trial, AFindingThatNothingExplainsSaysSo) {
  const Kernel kernel = test::subject_kernel();
  test::SubjectBackend dropped("term dropped");
  Trial trial = trial_of(kernel, "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30");
  trial.diagnose = true;
  const TrialReport wrong = run_trial(trial, dropped, {});
  EXPECT_EQ(wrong.verification.unexplained, std::nullopt);
  EXPECT_EQ(fully_traced(wrong, wrong.verification, dropped, {}, 0).unexplained,
            "no time was left for it; its replay explains it");
}

TEST(Trial, ACaseThePlanRefusesIsRejectedAndAnyOtherBadInputEndsTheRun) {
  Kernel kernel = test::subject_kernel();
  test::SubjectBackend backend;
  const auto plan = kernel.plan;
  kernel.plan = [](const ResolvedCase&, const TensorMap&) -> Program { throw BadInput("K must be 64"); };
  const Trial refused = trial_of(kernel, "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s3");
  EXPECT_EQ(run_trial(refused, backend, {}).rejected, "K must be 64");
  kernel.plan = plan;
  struct NoSuchInstruction : test::SubjectBackend {
    Outcome run(const Program&, const TensorMap&) override { throw BadInput("unknown instruction"); }
  } machine;
  EXPECT_THROW(run_trial(refused, machine, {}), BadInput);
}

}  // namespace
}  // namespace assay
