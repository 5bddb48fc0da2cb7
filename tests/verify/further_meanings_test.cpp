// A meaning has to fit further cases too, by the same numbers, and one of them wholly.
#include "src/verification/verify/further_meanings.h"

#include <gtest/gtest.h>

#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

Weighed fits(const std::string& cause, double score, double number = 0) {
  Weighed w;
  w.fitting.push_back({cause, "explained", score, {"evidence"}, {}});
  if (number != 0) w.by_numbers[cause]["factor"] = number;
  return w;
}

Diagnosis merged(Weighed own, const OnFurther& further, const std::string& cause,
                 bool own_is_silent = false) {
  merge_further(further, own_is_silent, own);
  for (const Diagnosis& d : own.fitting)
    if (d.cause == cause) return d;
  return {};
}

TEST(FurtherMeanings, OfNoFurtherCaseChangeNothing) {
  EXPECT_EQ(merged(fits("a", 0.9), {}, "a").score, 0.9);
}

TEST(FurtherMeanings, KeepWhatFitsThemAndLowerWhatDoesNot) {
  const Diagnosis all = merged(fits("a", 0.9), {{"x", fits("a", 0.9)}, {"y", fits("a", 0.9)}}, "a");
  EXPECT_DOUBLE_EQ(all.score, 0.9);
  EXPECT_EQ(all.evidence.size(), 3u);
  const Diagnosis half = merged(fits("a", 0.9), {{"x", fits("a", 0.9)}, {"y", fits("b", 0.9)}}, "a");
  EXPECT_LT(half.score, all.score);
  EXPECT_EQ(half.against, std::vector<std::string>{"it does not fit y"});
}

TEST(FurtherMeanings, AFactorThatIsAnotherOneInEveryRunIsNoExplanation) {
  const OnFurther same = {{"x", fits("a", 0.9, 2)}, {"y", fits("a", 0.9, 2)}};
  const OnFurther others = {{"x", fits("a", 0.9, 3)}, {"y", fits("a", 0.9, 5)}};
  EXPECT_DOUBLE_EQ(merged(fits("a", 0.9, 2), same, "a").score, 0.9);
  const Diagnosis other = merged(fits("a", 0.9, 2), others, "a");
  EXPECT_LT(other.score, thresholds::kExplained);
  EXPECT_EQ(other.against.size(), 2u);
}

TEST(FurtherMeanings, WhatFitsPartsOfAllAndNoneWhollyIsNotSure) {
  const double part = thresholds::kRefuted;
  EXPECT_LE(merged(fits("a", 1), {{"x", fits("a", part)}}, "a").score, thresholds::kExplained);
  EXPECT_GT(merged(fits("a", 1), {{"x", fits("a", 1)}}, "a").score, thresholds::kExplained);
}

TEST(FurtherMeanings, ThatFitThemAloneJoinAndMoreSoWhereTheCaseItselfIsSilent) {
  const OnFurther further = {{"x", fits("b", 0.9)}};
  const double beside = merged(fits("a", 0.9), further, "b").score;
  EXPECT_GT(beside, 0);
  EXPECT_GT(merged({}, further, "b", true).score, beside);
}

}  // namespace
}  // namespace assay
