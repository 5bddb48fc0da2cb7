// Small cases in which a formula is wrong, and what changes to the program are worth in them.
#include "src/verification/verify/telling_case.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/verify/scaled_kernel.h"

namespace assay {
namespace {

std::optional<TellingCase> told_by(const Kernel& kernel, const std::string& token) {
  return find_telling_case(parse_token(token), kernel, nullptr, {}, 10);
}
constexpr const char* kToken = "gla.fused_recurrent/B1/T3/H1/K2/V2/fp32/g-fp32/mild/s3";

TEST(TellingCase, OfARightKernelThereIsNone) {
  EXPECT_FALSE(told_by(find_kernel("gla.fused_recurrent"), kToken));
}

/// Wrong by more than rounded constants explain, but by less than twice as much: within what a changed
/// program may be off by. The program as it is must not count as its own repair.
TEST(TellingCase, WhatIsHardlyWrongIsNotMadeRightByNoChange) {
  const auto told = told_by(scaled_kernel("gla.fused_recurrent", 1 + 1.5F * 0x1p-13F), kToken);
  ASSERT_TRUE(told);
  ASSERT_FALSE(told->wrong.empty());
  const RepairVerdict unchanged = told->judge(told->exact, told->exact);
  EXPECT_FALSE(unchanged.whole);
  EXPECT_EQ(unchanged.left, 1);
}

TEST(TellingCase, WhatIsPlainlyWrongIsMadeRightByTheRightValuesAlone) {
  const auto told = told_by(scaled_kernel("gla.fused_recurrent", 1.5F), kToken);
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->judge(told->exact, told->exact).whole);
  const RepairVerdict right = told->judge(told->expected, told->exact);
  EXPECT_TRUE(right.whole);
  EXPECT_EQ(right.left, 0);
}

/// 2 heads of 8 tokens and 16 channels, all wrong.
TEST(TellingCase, OfManyWrongElementsThoseAtFewPlacesAlongEachAxisAreLookedAt) {
  TellingCase told;
  Tensor o("o", Dtype::fp32, {{"H", 2}, {"T", 8}, {"K", 16}});
  for (int64_t i = 0; i < o.size(); ++i)
    told.exact["o"].push_back(1), told.expected["o"].push_back(2 + static_cast<double>(i));
  told.wrong.push_back(o);
  std::set<int64_t> heads, tokens, channels;
  size_t count = 0;
  for (const JudgedElement& e : told.sample()) {
    ASSERT_TRUE(e.wrong);
    heads.insert(e.flat / 128), tokens.insert(e.flat / 16 % 8), channels.insert(e.flat % 16), ++count;
  }
  EXPECT_EQ(count, 24U);
  EXPECT_EQ(heads.size(), 1U);
  EXPECT_LE(tokens.size() * channels.size(), 32U) << tokens.size() << " x " << channels.size();
}

/// Gates of -8 in a case that was shrunk to one token: random weak ones would not reach the limit.
TEST(TellingCase, WhatDiffersInStrongGatesAloneIsToldByThem) {
  const std::string token =
      "gsa.fused_recurrent@D6/B1/T1/H1/K1/V1/M1/fp32/g-fp32/none/v-ones/s1/h0/g@0,0,0,0=-16";
  const auto told = told_by(find_kernel("gsa.fused_recurrent@D6"), token);
  ASSERT_TRUE(told);
  EXPECT_GT(told->judged_elements(), 8U) << token_of(told->resolved.case_);
}

/// A case shrunk to one head: its values' heads have to grow with the others, or no larger case is one.
TEST(TellingCase, OfAKernelWithValueHeadsACaseOfTwoHeadsTells) {
  const auto told = told_by(scaled_kernel("kda.fused_recurrent", 1.5F),
                            "kda.fused_recurrent/B1/T1/H1/HV1/K1/V1/fp32/g-fp32/none/v-ones/s1");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->resolved.case_.H, 2);
  EXPECT_EQ(told->resolved.case_.HV, 2);
  EXPECT_EQ(told->resolved.case_.T, 5);
}

/// Of a chunk's decays that are no weak ones two elements show what is wrong far from its start.
TEST(TellingCase, WhereFewElementsAreWrongACaseInWhichMoreAreTells) {
  const std::string token = "kda.chunk@W7/B1/T49/H1/HV1/K1/V1/fp32/g-fp32/edge:48/v-ones/s1/backward/h0";
  const auto told = told_by(find_kernel("kda.chunk@W7"), token);
  ASSERT_TRUE(told);
  int64_t wrong = 0;
  for (const Tensor& output : told->wrong)
    for (const bool is_wrong : told->wrong_elements(output.name)) wrong += is_wrong;
  EXPECT_GE(wrong, 4) << token_of(told->resolved.case_);
}

TEST(TellingCase, OfTheMostWrongElementsWhatIsLeftIsAsFarAsTheyAreOff) {
  const auto told = told_by(scaled_kernel("gla.fused_recurrent", 1.5F), kToken);
  ASSERT_TRUE(told);
  const std::vector<vm::OutputElement> wrong = told->most_wrong();
  ASSERT_FALSE(wrong.empty());
  for (const vm::OutputElement& element : wrong)
    EXPECT_TRUE(told->wrong_elements(element.output)[static_cast<size_t>(element.flat)]);
  EXPECT_EQ(told->left_of(told->exact, wrong), 1);
  EXPECT_EQ(told->left_of(told->expected, wrong), 0);
  vm::RealOutputs half = told->exact;
  for (auto& [name, values] : half)
    for (size_t i = 0; i < values.size(); ++i) values[i] = (values[i] + told->expected.at(name)[i]) / 2;
  EXPECT_NEAR(told->left_of(half, wrong), 0.5, 0x1p-40);
}

/// The launch that is wrong takes no fp32: ones alone would not tell values from one another.
TEST(TellingCase, WhatOneFormatAloneTakesPartInIsToldInIt) {
  const auto told = told_by(find_kernel("simple_gla.chunk_hopper@Z37"),
                            "simple_gla.chunk_hopper@Z37/B2/T65/H1/K16/V16/bf16/g-fp32/none/v-ones/s1");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->resolved.case_.dtype, Dtype::bf16);
  EXPECT_EQ(told->resolved.case_.values, "normal");
  EXPECT_EQ(told->resolved.case_.B, 2);
}

/// All tokens decay with the gate of the first: right without gates, and so wrong in them alone.
TEST(TellingCase, WhatIsWrongInGatesAloneIsToldByGatesNearZeroToo) {
  const Kernel& kernel = find_kernel("simple_gla.fused_recurrent@D13");
  const auto told = told_by(kernel, "simple_gla.fused_recurrent@D13/B1/T2/H1/K1/V1/fp32/g-fp32/mild/s1");
  ASSERT_TRUE(told);
  const auto tiny = with_tiny_gates(*told, kernel, {});
  ASSERT_TRUE(tiny);
  EXPECT_FALSE(tiny->wrong.empty());
  const Tensor &gates = told->inputs.at("g"), &small = tiny->inputs.at("g");
  EXPECT_EQ(small.value(0), 0x1p-12 * gates.value(0));
  EXPECT_NE(small.value(0), 0);
}

TEST(TellingCase, WhatIsWrongWithoutGatesTooIsNotToldByThem) {
  const Kernel kernel = scaled_kernel("gla.fused_recurrent", 1.5F);
  const auto told = told_by(kernel, kToken);
  ASSERT_TRUE(told);
  EXPECT_FALSE(with_tiny_gates(*told, kernel, {}));
}

TEST(TellingCase, InAsFewTokensAsTheShrunkCaseHasFewerValuesStandBehindAnElement) {
  const Kernel kernel = scaled_kernel("gla.fused_recurrent", 1.5F);
  const std::string token = "gla.fused_recurrent/B1/T2/H1/K1/V1/fp32/g-fp32/mild/s3";
  const auto told = told_by(kernel, token);
  ASSERT_TRUE(told);
  EXPECT_GT(told->resolved.case_.T, 2);
  const auto fewer = with_fewer_tokens(*told, parse_token(token), kernel, {});
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->resolved.case_.T, 2);
  EXPECT_FALSE(fewer->wrong.empty());
  EXPECT_FALSE(with_fewer_tokens(*fewer, parse_token(token), kernel, {})) << "it has no fewer";
}

}  // namespace
}  // namespace assay
