#include "src/verify/companion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/verify/float_recurrence.h"

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

/// Of the cases tried the first on which the kernel does not end, and the first whose values are wrong.
TEST(Companion, ATrapAndWrongValuesOfFurtherCasesAreKept) {
  const Kernel kernel = float_kernel();
  const Operator& op = find_operator("gla");
  for (const bool traps : {false, true})
    for (const bool wrong : {false, true}) {
      FloatBackend backend;
      backend.tamper = [&](Outcome& o, int run) {
        if (traps && run == 1) o.trap = Trap{"out-of-bounds", "load beyond k", {"kernels/x.cu", 12, 99, "x"}, {}, {}};
        if (wrong && run == 2) o.outputs.at("o").set(0, 1e3);
      };
      const FurtherCases found = find_further_cases(float_case(), kernel, op, backend, 1, 60);
      EXPECT_EQ(found.trapped.has_value(), traps);
      EXPECT_EQ(found.companion != nullptr, wrong);
      if (found.trapped && found.companion) EXPECT_NE(token_of(found.trapped->case_), token_of(found.companion->case_));
      EXPECT_EQ(backend.runs == 2, wrong) << "with wrong values at hand no further case is run";
    }
}

}  // namespace
}  // namespace assay
