#include "src/verification/compare/judge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

constexpr double kInf = INFINITY, kNaN = NAN;
constexpr double kMaxHalf = 65504,
                 kHalfThreshold = 65520;  // fp16: largest finite; smallest that rounds to infinity

TEST(Judge, EveryRowOfTheVerdictTable) {
  using enum ElementVerdict;
  struct Row {
    double got, mid, rad, bound;
    ElementVerdict verdict;
    const char* why;
  };
  const Row table[] = {
      {1, 1, 0, 0, ok, "exact with a zero bound"},
      {1, 1.0009765625, 0, 0, violation, "one unit off with a zero bound"},
      {1, 1.5, 1e-6, 0.5, undecided, "the enclosure straddles the bound"},
      {1, 1.5, 1e-6, 0.50001, ok, "inside"},
      {1, 1.5, 1e-6, 0.49999, violation, "outside"},
      {1, 1.001, 0.01, 1, undecided, "an enclosure wider than 2^-10 of the bound decides nothing"},
      {1, 3, 0.01, 1, violation, "but rounding cannot explain what lies outside it anyway"},
      {1, 1, 1e-300, 0, undecided, "bound zero needs radius zero"},
      {-0.0, 0, 0, 0, ok, "signs of zero are not judged"},
      {kNaN, 1, 0, 1, nonfinite, "NaN where the reference is finite"},
      {kInf, 1, 0, 1, nonfinite, "Inf where the reference is finite"},
      {kInf, 1, 0, kInf, undecided, "an infinite bound is not a pass"},
      {1, 1, 0, kNaN, undecided, "a NaN bound is not a pass"},
      {1, 1, kInf, 1, undecided, "an infinite radius is not a pass"},
      {1, 1, kNaN, 1, undecided, "a NaN radius is not a pass"},
      {1, kNaN, 0, 1, undecided, "no reference, no verdict"},
      {kNaN, kNaN, 0, 1, undecided, "no reference, no verdict"},
      {1, 1, -1, 1, undecided, "a negative radius is no enclosure"},
      {kInf, 1e6, 1, 10, ok, "overflow of the exact value asks for Inf"},
      {-kInf, 1e6, 1, 10, wrong_class, "of the same sign"},
      {kMaxHalf, 1e6, 1, 10, wrong_class, "a finite value where the exact one overflows"},
      {kNaN, 1e6, 1, 10, nonfinite, "NaN is never right"},
      {kInf, kHalfThreshold - 8, 0, 10, ok, "within the bound of overflow Inf is legal"},
      {-kInf, -kHalfThreshold + 8, 0, 10, ok, "on the negative side too"},
      {-kInf, kHalfThreshold - 8, 0, 10, nonfinite, "with the sign of the value"},
      {kInf, -1e3, 0, 1e6, ok, "a bound that reaches beyond the format on both sides allows either infinity"},
      {-kInf, 1e3, 0, 1e6, ok, "the negative one too"},
      {kInf, kHalfThreshold - 8, 1, 10, undecided, "an infinity in a wide enclosure is no pass"},
      {kMaxHalf, kHalfThreshold - 16, 0, 10, ok, "and so is the largest finite number"},
      {kInf, kMaxHalf - 100, 0, 10, nonfinite, "farther away it is not"},
  };
  for (const Row& row : table) {
    const ElementJudgement j = judge(Dtype::fp16, row.got, row.mid, row.rad, row.bound);
    EXPECT_EQ(static_cast<int>(j.verdict), static_cast<int>(row.verdict)) << row.why;
    EXPECT_FALSE(std::isnan(j.ratio)) << row.why;
  }
}

TEST(Judge, RatioIsErrorOverBound) {
  EXPECT_EQ(judge(Dtype::fp32, 1.25, 1, 0, 0.5).ratio, 0.5);
  EXPECT_EQ(judge(Dtype::fp32, 1, 1, 0, 0).ratio, 0);
  EXPECT_EQ(judge(Dtype::fp32, 2, 1, 0, 0).ratio, kInf);
}

}  // namespace
}  // namespace assay
