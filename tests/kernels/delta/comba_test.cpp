// comba's kernel on the machine, against the proved reference: what the tests of every kernel do not ask.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

struct CombaShape {
  int64_t B, T, H, HV, K, V;
  std::vector<int64_t> cu_seqlens;
};
/// Around the edges of batches, segments, kept states and blocks of channels; heads that share keys.
const CombaShape comba_shapes[] = {
    {1, 1, 1, 1, 1, 1, {}},
    {2, 33, 1, 2, 16, 24, {}},
    {1, 64, 2, 2, 8, 40, {}},
    {1, 70, 1, 3, 33, 7, {}},
    {1, 31, 1, 1, 100, 130, {}},
    {1, 20, 1, 1, 20, 256, {}},
    {1, 19, 1, 1, 256, 12, {}},
    {1, 97, 1, 1, 72, 16, {}},
    {1, 96, 1, 2, 40, 16, {0, 0, 15, 16, 80, 80, 96}},
};
const char* const comba_profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                      "reset", "contrast",   "ladder",   "extreme"};

Case comba_case(const CombaShape& shape, uint64_t seed) {
  const Dtype formats[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  Case c;
  c.kernel = "comba.fused_recurrent", c.direction = Direction::both;
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.HV = shape.HV, c.K = shape.K, c.V = shape.V;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = formats[seed % 3], c.gate_dtype = formats[seed / 3 % 3], c.seed = seed;
  c.decay = comba_profiles[seed % std::size(comba_profiles)];
  c.initial_state = seed % 2 == 0, c.final_state_gradient = seed % 3 != 0;
  if (seed % 8 == 3) c.without.insert("beta");
  return c;
}

TEST(Comba, StaysWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  for (uint64_t seed = 0; seed < 2 * std::size(comba_shapes); ++seed)
    expect_within_bound(comba_case(comba_shapes[(seed + seed / 9) % std::size(comba_shapes)], seed));
}

TEST(Comba, IsExactWhereNoOperationRounds) {
  Case c = comba_case({1, 70, 1, 1, 40, 24, {}}, 6);
  c.values = "exact", c.decay = "none";
  for (const OutputComparison& output : judged_run(c).outputs) {
    EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got " << output.worst.got
                               << " expected " << output.worst.expected;
    if (output.name != "dg") {
      EXPECT_EQ(output.worst.bound, 0) << output.name;
    }
  }
}

TEST(Comba, StaysWithinItsBoundWhereStatesGrow) {
  Case c = comba_case({1, 90, 1, 1, 20, 12, {}}, 4);
  c.values = "growing", c.decay = "none", c.dtype = Dtype::fp32;
  double largest = 0;
  for (const OutputComparison& output : expect_within_bound(c).outputs)
    largest = std::max(largest, std::fabs(output.worst.expected));
  EXPECT_GT(largest, 0x1p20);
}

}  // namespace
}  // namespace assay
