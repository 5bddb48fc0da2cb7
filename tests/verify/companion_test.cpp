#include "src/verify/companion.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay {
namespace {

TEST(Companion, CasesHaveRandomValuesSeveralHeadsAndMoreTokensAmongThemWholeChunks) {
  const Case shrunk = parse_token("gla.chunk/B1/T65/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward");
  const std::vector<Case> cases = companion_cases(shrunk, find_operator("gla"));
  ASSERT_FALSE(cases.empty());
  EXPECT_GT(cases.front().T, shrunk.T);
  EXPECT_GE(cases.front().H, 2);
  for (const Case& c : cases) EXPECT_EQ(c.values, "normal") << token_of(c);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.T % 64 == 0; }));
}

TEST(Companion, OfAShortCaseTheFirstOneIsLongerThanAChunkOf64) {
  const Case one = parse_token("gla.chunk/B1/T1/H1/K1/V1/bf16/g-fp32/none/v-ones/s1");
  EXPECT_GT(companion_cases(one, find_operator("gla")).front().T, 64) << "what a chunk hands on shows in no shorter one";
}

TEST(Companion, OfManyChannelsASmallerOneComesFirst) {
  const Case wide = parse_token("gla.chunk/B1/T20/H1/K80/V80/bf16/g-fp32/none/v-ones/s1");
  const std::vector<Case> cases = companion_cases(wide, find_operator("gla"));
  EXPECT_LE(cases.front().K, 8);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.K == 80 && c.T > 20; }))
      << "a fault of the second tile needs it";
}

}  // namespace
}  // namespace assay
