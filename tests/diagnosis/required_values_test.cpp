// What values would have to be, and whether they are among others.
#include "src/verification/diagnosis/required_values.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(RequiredValues, ChangesAreThoseThatMoveTheElementsAsTheyShould) {
  const std::vector<double> a{1, 0, 2, 0}, b{0, 3, 1, 0};
  const auto changes = changes_needed({&a, &b}, {0.5, -3, 0, 0});  // a / 2 - b
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 2U);
  EXPECT_NEAR((*changes)[0], 0.5, 1e-15);
  EXPECT_NEAR((*changes)[1], -1, 1e-15);
}

TEST(RequiredValues, OfColumnsThatDependOnOneAnotherNothingIsSaid) {
  const std::vector<double> a{1, 0, 2}, twice{2, 0, 4}, none{0, 0, 0};
  EXPECT_FALSE(changes_needed({&a, &twice}, {1, 0, 2}));
  EXPECT_FALSE(changes_needed({&none}, {1, 0, 2}));
}

TEST(RequiredValues, BecomeOthersOfAPoolToTheDigitsOfDerivatives) {
  const std::vector<double> pool{0.5, -1.25, 3, 0};
  EXPECT_TRUE(become_others({0.5, 0.5}, {2.5, -1.75 - 0x1p-16}, pool));
  EXPECT_FALSE(become_others({0.5, 0.5}, {2.5, -1.75 - 0x1p-10}, pool));
  EXPECT_FALSE(become_others({0.5, 0.5}, {2.5, -0.5}, pool)) << "a 0 is what is missing, too";
  EXPECT_FALSE(become_others({0.5, 0.5}, {2.5, 0x1p-18}, pool)) << "what it was";
  EXPECT_FALSE(become_others({}, {}, pool));
}

/// 200 values of the size of 1 hold any other one by chance once in 41.
TEST(RequiredValues, BecomeNoOthersOfAPoolThatHoldsAllByChance) {
  std::vector<double> pool;
  for (int i = 0; i < 200; ++i) pool.push_back(1 + i / 200.0);
  EXPECT_FALSE(become_others({pool[7], pool[9]}, {0.5, 0.5}, pool));
  EXPECT_TRUE(become_others({pool[7], pool[9], pool[11], pool[50]}, {0.5, 0.5, 0.5, 0.25}, pool));
}

}  // namespace
}  // namespace assay
