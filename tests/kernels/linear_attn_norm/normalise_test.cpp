// linear_attn_norm's kernels on the machine, against the proved reference: what the tests of every gated
// kernel do not ask of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace linear_attn_norm_normalise_test {

const Dtype dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

struct Shape {
  int64_t B, T, H, K, V;
  std::vector<int64_t> cu_seqlens;
};
const Shape shapes[] = {
    {1, 1, 1, 1, 1, {}},      {2, 17, 1, 16, 24, {}},
    {1, 64, 2, 8, 40, {}},    {1, 130, 1, 72, 16, {}},
    {1, 63, 1, 100, 130, {}}, {1, 71, 1, 20, 256, {}},
    {1, 70, 1, 256, 12, {}},  {1, 150, 1, 40, 16, {0, 0, 15, 16, 100, 100, 150}},
};

const Operator& norm() {
  return find_operator("linear_attn_norm");
}
Case case_of(const std::string& kernel, const Shape& shape, Dtype dtype, uint64_t seed) {
  Case c;
  c.kernel = kernel, c.direction = Direction::backward, c.decay = "none";
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.K = shape.K, c.V = shape.V;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = dtype, c.seed = seed;
  c.initial_state = seed % 2 == 0, c.final_state_gradient = seed % 3 != 0;
  return c;
}
Outcome run(const Case& c, const TensorMap& inputs) {
  Outcome outcome = vm::run(find_kernel(c.kernel).plan(resolve_unchecked(c, norm()), inputs), inputs, {});
  EXPECT_FALSE(outcome.trap) << outcome.trap->message;
  return outcome;
}

class NormalisedGradients : public testing::TestWithParam<const char*> {};

TEST_P(NormalisedGradients, StayWithinTheProvedBoundOnEveryShapeAndFormat) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const Shape& shape : shapes) expect_within_bound(case_of(GetParam(), shape, dtype, seed++));
}

TEST_P(NormalisedGradients, ExistForTheInputsThatAreThere) {
  for (const char* absent : {"", "initial_state", "z0"})
    for (const bool state : {true, false}) {
      Case c = case_of(GetParam(), {1, 20, 1, 8, 8, {}}, Dtype::bf16, 1);
      c.initial_state = state;
      if (*absent) c.without = {absent};
      std::set<std::string> expected = {"dq", "dk", "dv"}, got;
      for (const std::string name : {"initial_state", "z0"})
        if (state && name != absent) expected.insert("d" + name);
      for (const auto& [name, tensor] : expect_within_bound(c).outcome.outputs) got.insert(name);
      EXPECT_EQ(got, expected) << token_of(c);
    }
}

TEST_P(NormalisedGradients, PassThoseOfTheFinalStatesOnWhereThereAreNoTokens) {
  for (const bool cotangent : {true, false}) {
    Case c = case_of(GetParam(), {1, 0, 2, 24, 16, {}}, Dtype::bf16, 2);
    c.final_state_gradient = cotangent;
    const TensorMap inputs = draw_inputs(c, norm());
    const Outcome outcome = run(c, inputs);
    for (const auto& [gradient, of] :
         {std::pair{"dinitial_state", "dfinal_state"}, std::pair{"dz0", "dzt"}}) {
      const Tensor zeros("zeros", Dtype::fp32, outcome.outputs.at(gradient).axes);
      EXPECT_EQ(bits_of(outcome, gradient), cotangent ? inputs.at(of).data : zeros.data) << gradient;
    }
  }
}

/// Weights sum to one: where all values agree so does the output, whatever q and k are.
TEST_P(NormalisedGradients, AreOfAMeanOfTheValues) {
  for (const Dtype dtype : dtypes) {
    Case c = case_of(GetParam(), {1, 130, 2, 24, 8, {}}, dtype, 1);
    c.direction = Direction::forward, c.initial_state = false;
    TensorMap inputs = draw_inputs(c, norm());
    for (int64_t i = 0; i < inputs.at("v").size(); ++i) inputs.at("v").set(i, 1.5);
    const Outcome outcome = run(c, inputs);
    const Tensor& o = outcome.outputs.at("o");
    for (int64_t i = 0; i < o.size(); ++i) ASSERT_NEAR(o.value(i), 1.5, 0x1p-7) << o.element_name(i);
  }
}

/// Sizes over many octaves, q and k not negative: within the bound, or no verdict because something may
/// overflow.
TEST_P(NormalisedGradients, OfExtremeSizesStayWithinTheBoundOrMayOverflow) {
  int64_t judged = 0, elements = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Case c =
        case_of(GetParam(), {1, 1 + static_cast<int64_t>(seed * 7 % 90), 1, 5, 4, {}}, Dtype::fp32, seed);
    c.direction = Direction::both;
    static constexpr double kScales[] = {1, 0x1p-60, 0x1p60, 0.1};
    c.scale = kScales[seed % 4];
    TensorMap inputs = draw_inputs(c, norm());
    int shift = static_cast<int>(seed * 37 % 100);
    for (auto& [name, tensor] : inputs) {
      shift = (shift * 61 + 29) % 120;
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.set(i, std::ldexp(name[0] == 'z' ? std::fabs(tensor.value(i)) : tensor.value(i),
                                 shift - 60 - static_cast<int>(i * 5 % 40)));
    }
    for (const OutputComparison& output : judged_run(c, inputs, "sm_90").outputs) {
      EXPECT_EQ(output.violation + output.nonfinite + output.wrong_class, 0)
          << token_of(c) << ": " << output.worst.element << " got " << output.worst.got << " expected "
          << output.worst.expected << " bound " << output.worst.bound;
      judged += output.ok, elements += output.elements;
    }
  }
  EXPECT_GE(judged, elements / 4);
}

INSTANTIATE_TEST_SUITE_P(EachMode, NormalisedGradients,
                         testing::Values("linear_attn_norm.chunk", "linear_attn_norm.fused_recurrent"));

}  // namespace linear_attn_norm_normalise_test
}  // namespace assay
