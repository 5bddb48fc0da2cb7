// Gradients of the rwkv6 kernels on the machine, against the proved reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace rwkv6_backward_test {

struct Shape {
  int64_t B, T, H, K, V;
  std::vector<int64_t> cu_seqlens;
};

/// Around the edges of tokens read at once, tiles, chunks and blocks of channels; aligned and not. K = 16
/// with V = 64 and the reverse are where sizes of the state are easily exchanged.
const Shape shapes[] = {
    {1, 1, 1, 1, 1, {}},     {2, 17, 3, 16, 24, {}},   {1, 64, 2, 8, 40, {}},
    {1, 130, 1, 72, 16, {}}, {1, 63, 1, 100, 130, {}}, {1, 66, 1, 16, 64, {}},
    {1, 71, 1, 64, 16, {}},  {1, 70, 1, 256, 12, {}},  {1, 150, 2, 40, 16, {0, 0, 15, 16, 100, 100, 150}},
};
const char* const profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                "reset", "contrast",   "ladder",   "extreme"};
const Dtype dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

Case case_of(const std::string& kernel, const Shape& shape, Dtype dtype, Dtype gate, const char* decay,
             uint64_t seed) {
  Case c;
  c.kernel = kernel, c.direction = Direction::backward;
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.K = shape.K, c.V = shape.V;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = dtype, c.gate_dtype = gate;
  c.decay = decay;
  c.seed = seed;
  c.initial_state = seed % 2 == 0;
  c.final_state_gradient = seed % 3 != 0;
  return c;
}

Outcome run(const Case& c, const TensorMap& inputs) {
  const Outcome outcome =
      vm::run(find_kernel(c.kernel).plan(resolve_unchecked(c, find_operator("rwkv6")), inputs), inputs, {});
  EXPECT_FALSE(outcome.trap) << token_of(c) << ": " << outcome.trap->message;
  return outcome;
}

class Rwkv6Gradients : public testing::TestWithParam<const char*> {};

TEST_P(Rwkv6Gradients, StayWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const char* profile : profiles) {
      const Shape& shape = shapes[(seed + seed / 9) % std::size(shapes)];
      expect_within_bound(case_of(GetParam(), shape, dtype, dtypes[seed % 3], profile, seed));
      ++seed;
    }
}

TEST_P(Rwkv6Gradients, AreExactWhereNoOperationRounds) {
  for (const Dtype dtype : dtypes) {
    Case c = case_of(GetParam(), {1, 140, 1, 40, 24, {}}, dtype, Dtype::fp32, "none", 4);
    c.values = "exact";
    for (const OutputComparison& output : judged_run(c).outputs) {
      EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got " << output.worst.got
                                 << " expected " << output.worst.expected;
      if (output.name != "dw") {
        EXPECT_EQ(output.worst.bound, 0) << output.name;
      }
    }
  }
}

TEST_P(Rwkv6Gradients, StayFiniteAndBoundedOverThousandsOfTokensWithGatesToMinusTenThousand) {
  for (const char* profile : {"extreme", "reset", "spike"}) {
    const JudgedRun judged = expect_within_bound(
        case_of(GetParam(), {1, 3072, 1, 16, 16, {}}, Dtype::fp32, Dtype::fp32, profile, 4));
    for (const auto& [name, tensor] : judged.outcome.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_TRUE(std::isfinite(tensor.value(i))) << profile << ' ' << tensor.element_name(i);
  }
}

TEST_P(Rwkv6Gradients, OfTheBonusAreZeroWithoutTokens) {
  const Case c = case_of(GetParam(), {1, 0, 2, 24, 16, {}}, Dtype::bf16, Dtype::fp32, "mild", 2);
  const TensorMap inputs = draw_inputs(c, find_operator("rwkv6"));
  const Outcome outcome = run(c, inputs);
  const Tensor& du = outcome.outputs.at("du");
  for (int64_t i = 0; i < du.size(); ++i) EXPECT_EQ(du.bits(i), 0u);
  EXPECT_EQ(bits_of(outcome, "dinitial_state"), inputs.at("dfinal_state").data);
}

/// The bonus is shared by all sequences: its gradient is the sum over them, which the others' gradients are
/// not.
TEST_P(Rwkv6Gradients, OfTheBonusAddUpOverSequencesInOneOrder) {
  Case c = case_of(GetParam(), {1, 300, 2, 20, 12, {0, 70, 70, 71, 299, 300}}, Dtype::fp32, Dtype::fp32,
                   "mild", 2);
  const TensorMap inputs = draw_inputs(c, find_operator("rwkv6"));
  const Outcome first = run(c, inputs), second = run(c, inputs);
  EXPECT_EQ(bits_of(first, "du"), bits_of(second, "du"));
  expect_within_bound(c);
}

/// Outside the domain, but harmless: e^w is 0, and so is the gate's gradient.
TEST_P(Rwkv6Gradients, AreFiniteWhereAGateIsMinusInfinity) {
  for (const Dtype dtype : dtypes) {
    const Case c = case_of(GetParam(), {1, 100, 1, 20, 24, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
    TensorMap inputs = draw_inputs(c, find_operator("rwkv6"));
    Tensor& w = inputs.at("w");
    for (int64_t i = 0; i < w.size(); i += 7) w.set(i, -std::numeric_limits<double>::infinity());
    const Outcome outcome = run(c, inputs);
    for (const auto& [name, tensor] : outcome.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_TRUE(std::isfinite(tensor.value(i))) << tensor.element_name(i) << ' ' << token_of(c);
    for (int64_t i = 0; i < w.size(); i += 7) ASSERT_EQ(outcome.outputs.at("dw").value(i), 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(EachMode, Rwkv6Gradients, testing::Values("rwkv6.chunk", "rwkv6.fused_recurrent"));

}  // namespace rwkv6_backward_test
}  // namespace assay
