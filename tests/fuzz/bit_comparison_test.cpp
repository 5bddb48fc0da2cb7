#include "fuzz/bit_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

Tensor row_of(std::initializer_list<double> values) {
  Tensor t("o", Dtype::fp32, {{"T", static_cast<int64_t>(values.size())}});
  int64_t i = 0;
  for (const double value : values) t.set(i++, value);
  return t;
}

TEST(BitComparison, NamesTheFirstElementThatDiffersWithBothValues) {
  const Failure failure = same_bits(row_of({1, 2, 3}), row_of({1, 2.5, 4}));
  ASSERT_TRUE(failure);
  for (const char* part : {"o[t=1]", "2 (0x40000000)", "2.5 (0x40200000)", "2 of 3 elements"})
    EXPECT_NE(failure->find(part), std::string::npos) << *failure;
}

TEST(BitComparison, TakesAllNanAsEqualAndZerosOfBothSignsAsDifferent) {
  Tensor other = row_of({NAN});
  other.set_bits(0, 0xffc00001);
  EXPECT_FALSE(same_bits(row_of({NAN}), other));
  EXPECT_TRUE(same_bits(row_of({0.0}), row_of({-0.0})));
}

TEST(BitComparison, SeesAnotherSizeAMissingOutputAndATrapInEitherRun) {
  EXPECT_TRUE(same_bits(row_of({1}), row_of({1, 2})));
  Outcome good, without, trapped;
  good.outputs["o"] = row_of({1});
  trapped.outputs = good.outputs;
  trapped.trap = Trap{.kind = TrapKind::hang};
  EXPECT_FALSE(same_outcome(good, good));
  EXPECT_TRUE(same_outcome(good, without));
  EXPECT_TRUE(same_outcome(good, trapped));
  EXPECT_TRUE(same_outcome(trapped, good));
}

}  // namespace
}  // namespace assay
