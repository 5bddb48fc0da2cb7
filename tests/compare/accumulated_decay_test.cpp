#include "src/verification/compare/accumulated_decay.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

/// w [B=2,T=3,K=2], exactly -0.25 everywhere with a bound of 0.01 each.
struct Decays {
  Tensor got{"w", Dtype::fp32, {{"B", 2}, {"T", 3}, {"K", 2}}};
  ReferenceOutput exact;

  Decays() {
    exact.mid.assign(12, -0.25), exact.rad.assign(12, 0), exact.bound.assign(12, 0.01);
    for (int64_t i = 0; i < 12; ++i) got.set(i, -0.25);
  }
};

TEST(AccumulatedDecay, SumsTheErrorsOfAChannelOverItsTokens) {
  Decays d;
  for (const int64_t flat : {7, 9, 11}) d.got.set(flat, -0.125);  // b = 1, k = 1
  d.got.set(4, -0.5);                                             // one larger error, b = 0, t = 2, k = 0
  const auto sum = accumulated_decay(d.got, d.exact, {});
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->element, "w[b=1,t=2,k=1]");
  EXPECT_EQ(sum->steps, 3);
  EXPECT_EQ(sum->error, 0.375);
  EXPECT_EQ(sum->decay, -0.75);
  EXPECT_NEAR(sum->bound, 0.03, 1e-15);
}

TEST(AccumulatedDecay, ErrorsOfOtherSignCancelAndTheLargestPartialSumCounts) {
  Decays d;
  d.got.set(0, -0.5), d.got.set(2, 0.0);  // t = 0 and t = 1 of b = 0, k = 0
  const auto sum = accumulated_decay(d.got, d.exact, {});
  EXPECT_EQ(sum->element, "w[b=0,t=0,k=0]");
  EXPECT_EQ(sum->error, -0.25);
}

TEST(AccumulatedDecay, BeginsAnewWithEverySequence) {
  Decays d;
  d.got.axes = {{"B", 1}, {"T", 6}, {"K", 2}};
  for (int64_t i = 0; i < 12; ++i) d.got.set(i, -0.375);
  EXPECT_EQ(accumulated_decay(d.got, d.exact, {0, 2, 2, 6})->steps, 4);
  EXPECT_EQ(accumulated_decay(d.got, d.exact, {0, 2, 2, 6})->error, -0.5);
  EXPECT_EQ(accumulated_decay(d.got, d.exact, {})->steps, 6);
}

TEST(AccumulatedDecay, SaysNothingOfNoTokensOrOfValuesThatAreNotFinite) {
  Decays d;
  d.got.set(5, NAN);
  EXPECT_FALSE(accumulated_decay(d.got, d.exact, {}));
  EXPECT_FALSE(accumulated_decay(Tensor("w", Dtype::fp32, {{"B", 1}, {"T", 0}}), {}, {}));
}

}  // namespace
}  // namespace assay
