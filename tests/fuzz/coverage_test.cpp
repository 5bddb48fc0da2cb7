#include "fuzz/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

bool covers(const std::string& token, const std::string& feature, const std::string& value) {
  const auto features = coverage_of(parse_token(token));
  return std::find(features.begin(), features.end(), std::pair(feature, value)) != features.end();
}

TEST(Coverage, NamesTheShapeOfTheLongestSequence) {
  const std::pair<const char*, const char*> table[] = {{"T0", "empty"},
                                                       {"T7", "part of one chunk"},
                                                       {"T48", "sub-chunks of one chunk"},
                                                       {"T64", "one chunk"},
                                                       {"T65", "one chunk and a partial one"},
                                                       {"T128", "two or more chunks"},
                                                       {"T129", "two chunks and a partial one"},
                                                       {"T200/cu0,1,200", "two chunks and a partial one"},
                                                       {"T200/cu0,100,200", "one chunk and a partial one"}};
  for (const auto& [sizes, shape] : table)
    EXPECT_TRUE(covers(std::string("gla.chunk/B1/") + sizes + "/H1/K4/V4", "longest sequence", shape))
        << sizes;
}

TEST(Coverage, NamesWhatSmallTestsMiss) {
  const std::tuple<const char*, const char*, const char*> table[] = {
      {"T80/H1/K100/V72", "K and V above one tile, no multiples", "yes"},
      {"T80/H1/K100/V64", "K and V above one tile, no multiples", "no"},
      {"T70/H1/K4/V4/fp32/g-fp32/edge", "budget at a partial chunk", "yes"},
      {"T64/H1/K4/V4/fp32/g-fp32/edge", "budget at a partial chunk", "no"},
      {"T70/H1/K4/V4/fp32/g-fp32/mild", "budget at a partial chunk", "no"},
      {"T20/H1/K4/V4/cu0,1,20", "a sequence of one token", "yes"},
      {"T20/H1/K4/V4/cu0,9,20", "a sequence of one token", "no"}};
  for (const auto& [sizes, feature, value] : table)
    EXPECT_TRUE(covers(std::string("gla.chunk/B1/") + sizes, feature, value)) << sizes << " " << feature;
}

Verification with_ratio(const std::string& token, double ratio) {
  Verification v;
  v.kernel = "gla.chunk";
  v.case_ = parse_token(token);
  v.verdict = Verdict::pass;
  OutputComparison o;
  o.name = "o";
  o.elements = 4;
  o.max_ratio = ratio;
  o.max_tightness = ratio / 2;
  v.outputs = {o};
  return v;
}

TEST(Coverage, KeepsTheLargestRatioPerOutputFormatProfileAndLength) {
  Coverage coverage;
  coverage.add(with_ratio("gla.chunk/T80/K4/V4/bf16/ladder:8", 0.25));
  coverage.add(with_ratio("gla.chunk/T90/K4/V4/bf16/ladder:1", 0.75));
  coverage.add(with_ratio("gla.chunk/T90/K4/V4/fp16/ladder:1", 0.5));
  coverage.add(with_ratio("gla.chunk/T2000/K4/V4/bf16/ladder", 0.125));
  const auto rows = coverage.tightness();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].dtype + rows[0].decay + rows[0].length_class, "bf16ladderT <= 1024");
  EXPECT_EQ(rows[0].cases, 2);
  EXPECT_EQ(rows[0].max_ratio, 0.75);
  EXPECT_EQ(rows[0].max_tightness, 0.375);
  EXPECT_EQ(rows[1].length_class, "T > 1024");
  EXPECT_EQ(rows[2].dtype, "fp16");
}

TEST(Coverage, UndecidedCasesStandApart) {
  Verification undecided = with_ratio("gla.chunk/T80/K4/V4/bf16/mild", HUGE_VAL), wrong = undecided;
  undecided.outputs[0].undecided = 1;
  Coverage coverage;
  coverage.add(undecided);
  coverage.add(with_ratio("gla.chunk/T90/K4/V4/bf16/mild", 0.25));
  ASSERT_EQ(coverage.tightness().size(), 1U);
  TightnessRow row = coverage.tightness()[0];
  EXPECT_EQ(row.undecided, 1);
  EXPECT_EQ(row.cases, 1);
  EXPECT_EQ(row.max_ratio, 0.25);
  wrong.outputs[0].undecided = wrong.outputs[0].violation = 1, wrong.outputs[0].max_ratio = 3;
  coverage.add(wrong);
  row = coverage.tightness()[0];
  EXPECT_EQ(row.undecided, 1);
  EXPECT_EQ(row.max_ratio, 3) << "what is wrong for certain counts, whatever stands beside it";
}

TEST(Coverage, CopiesHaveNoBoundToBeLoose) {
  Verification copy = with_ratio("gla.chunk/T80/K4/V4/fp32/mild", 0), loose = copy;
  loose.outputs[0].max_relative_bound = 0x1p-20;
  Coverage of_copy, of_loose;
  of_copy.add(copy), of_loose.add(loose);
  EXPECT_TRUE(of_copy.tightness().empty());
  EXPECT_EQ(of_loose.tightness().size(), 1U);
}

TEST(Coverage, ExactCasesAndThoseOutOfDomainSayNothingOfTightness) {
  Coverage coverage;
  coverage.add(with_ratio("gla.chunk/T80/K4/V4/bf16/none/v-exact", 0));
  Verification outside = with_ratio("gla.chunk/T80/K4/V4/bf16/-inf", 0);
  outside.verdict = Verdict::domain;
  coverage.add(outside);
  EXPECT_TRUE(coverage.tightness().empty());
  int64_t verdicts = 0;
  for (const CoverageRow& row : coverage.coverage())
    if (row.feature == "verdict") verdicts += row.cases;
  EXPECT_EQ(verdicts, 2);
}

TEST(Coverage, AnotherExponentRangeIsAnotherFeature) {
  Verification v = with_ratio("gla.chunk/T80/K4/V4/bf16/mild", 0.1);
  v.exponents = {{{"chunk.cu", 12, 90, "f"}, "ex2.approx.ftz.f32", -4, 0, 10, 0}};
  const auto first = features_of(v);
  v.exponents[0].min = -5;
  EXPECT_EQ(features_of(v), first);
  v.exponents[0].min = -9;
  EXPECT_NE(features_of(v), first);
}

}  // namespace
}  // namespace assay
