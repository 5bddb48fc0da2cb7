#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/elementwise/extreme_inputs.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace l2norm_fused_test {

constexpr Dtype kDtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

struct Shape {
  int64_t B, T, H, K;
};
/// Around the edges of warps of 32 channels and blocks of four rows.
const Shape kShapes[] = {{1, 1, 1, 1},  {1, 0, 2, 8},   {2, 3, 1, 31},  {1, 5, 1, 32},
                         {1, 3, 3, 33}, {2, 4, 2, 100}, {1, 9, 1, 257}, {1, 2, 1, 4096}};

Case case_of(const Shape& s, Dtype dtype, uint64_t seed) {
  Case c;
  c.kernel = "l2norm.fused", c.direction = Direction::both;
  c.B = s.B, c.T = s.T, c.H = s.H, c.K = s.K;
  c.dtype = dtype, c.seed = seed;
  return c;
}

TEST(L2Norm, StaysWithinTheProvedBoundOnEveryShapeAndFormat) {
  uint64_t seed = 0;
  for (const Shape& shape : kShapes)
    for (const Dtype dtype : kDtypes) expect_within_bound(case_of(shape, dtype, ++seed));
}

TEST(L2Norm, RowsAreAsLongAsOneAndZerosStayZeros) {
  const Case c = case_of({1, 8, 2, 40}, Dtype::fp32, 3);
  TensorMap inputs = draw_inputs(c, find_operator("l2norm"));
  for (int64_t i = 0; i < 40; ++i) inputs.at("x").set(i, 0);
  const TensorMap outputs = judged_run(c, inputs, "sm_90").outcome.outputs;
  for (int64_t row = 0; row < 16; ++row) {
    double square = 0;
    for (int64_t i = 0; i < 40; ++i) square += std::pow(outputs.at("y").value(40 * row + i), 2);
    // 1 less eps / |x|^2, of about 40, and 10 roundings of fp32.
    EXPECT_NEAR(square, row == 0 ? 0 : 1, 1e-6) << row;
  }
}

TEST(L2Norm, HoldsForTinyAndHugeInputs) {
  for (uint64_t seed = 1; seed <= 30; ++seed)
    expect_judged_at_extremes(case_of({1, 20, 2, 9}, kDtypes[seed % 3], seed));
}

TEST(L2Norm, LongSumsStayPrecise) {
  const Case c = case_of({1, 4, 1, 30000}, Dtype::fp32, 1);
  for (const OutputComparison& output : expect_within_bound(c).outputs)
    EXPECT_LE(output.worst.bound, 0x1p-12 * std::fabs(output.worst.expected) + 0x1p-20) << output.name;
}

}  // namespace l2norm_fused_test
}  // namespace assay
