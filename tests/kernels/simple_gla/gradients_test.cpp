// Gradients of the scalar family's kernels on the machine, against the proved reference: every mode of
// simple_gla, linear_attn, retention and lightning_attn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

struct Shape {
  int64_t B, T, H, K, V;
  std::vector<int64_t> cu_seqlens;
};

/// Around the edges of tokens read at once, tiles, chunks and blocks of channels; aligned and not.
const Shape shapes[] = {
    {1, 1, 1, 1, 1, {}},     {2, 17, 2, 16, 24, {}},  {1, 64, 2, 8, 40, {}},
    {1, 80, 1, 33, 7, {}},   {1, 130, 1, 72, 16, {}}, {1, 63, 1, 100, 130, {}},
    {1, 71, 1, 20, 256, {}}, {1, 70, 1, 256, 12, {}}, {1, 150, 1, 40, 16, {0, 0, 15, 16, 100, 100, 150}},
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

const Operator& operator_of(const std::string& kernel) {
  return find_operator(find_kernel(kernel).operator_name);
}

Outcome outcome_of(const Case& c, const TensorMap& inputs) {
  const Outcome outcome =
      vm::run(find_kernel(c.kernel).plan(resolve_unchecked(c, operator_of(c.kernel)), inputs), inputs, {});
  EXPECT_FALSE(outcome.trap) << token_of(c) << ": " << outcome.trap->message;
  return outcome;
}

std::vector<std::string> kernels_of(const std::set<std::string>& operators) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels())
    if (operators.contains(kernel.operator_name) && kernel.adjoint_arithmetic) names.push_back(kernel.name);
  return names;
}
std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

/// With a gate per token, per head, or none, as the operator has it.
class ScalarGradients : public testing::TestWithParam<std::string> {};

TEST_P(ScalarGradients, StayWithinTheProvedBoundOnEveryShapeAndFormat) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const Shape& shape : shapes) {
      const char* profile = profiles[(seed + seed / 9) % std::size(profiles)];
      expect_within_bound(case_of(GetParam(), shape, dtype, dtypes[seed % 3], profile, seed));
      ++seed;
    }
}

TEST_P(ScalarGradients, AreExactWhereNoOperationRounds) {
  if (operator_of(GetParam()).inexact) GTEST_SKIP() << "its heads decay";
  for (const Dtype dtype : dtypes)
    for (const Direction direction : {Direction::backward, Direction::both}) {
      Case c = case_of(GetParam(), {1, 140, 1, 40, 24, {}}, dtype, Dtype::fp32, "none", 4);
      c.values = "exact", c.direction = direction;
      for (const OutputComparison& output : judged_run(c).outputs) {
        EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got "
                                   << output.worst.got << " expected " << output.worst.expected;
        if (output.name != "dg") {
          EXPECT_EQ(output.worst.bound, 0) << output.name;
        }
      }
    }
}

TEST_P(ScalarGradients, PassTheFinalStatesGradientOnWhereThereAreNoTokens) {
  for (const bool cotangent : {true, false}) {
    Case c = case_of(GetParam(), {1, 0, 2, 24, 16, {}}, Dtype::bf16, Dtype::fp32, "mild", 2);
    c.final_state_gradient = cotangent;
    const TensorMap inputs = draw_inputs(c, operator_of(GetParam()));
    const Outcome outcome = outcome_of(c, inputs);
    const Tensor zeros("zeros", Dtype::fp32, outcome.outputs.at("dinitial_state").axes);
    EXPECT_EQ(bits_of(outcome, "dinitial_state"), cotangent ? inputs.at("dfinal_state").data : zeros.data);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, ScalarGradients,
    testing::ValuesIn(kernels_of({"simple_gla", "linear_attn", "retention", "lightning_attn"})), test_name);

/// With each of the gates that simple_gla takes.
class SimpleGlaGradients : public testing::TestWithParam<std::string> {};

TEST_P(SimpleGlaGradients, StayWithinTheProvedBoundOnEveryProfileOfAGatePerHead) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const char* profile : profiles) {
      Case c = case_of(GetParam(), shapes[(seed + seed / 9) % std::size(shapes)], dtype, dtypes[seed % 3],
                       profile, seed);
      c.without = {"g"};
      const JudgedRun run = expect_within_bound(c);
      EXPECT_TRUE(run.outcome.outputs.contains("dg_gamma")) << token_of(c);
      ++seed;
    }
}

TEST_P(SimpleGlaGradients, ExistForTheInputsThatAreThere) {
  const std::vector<std::pair<std::set<std::string>, std::string>> gates = {
      {{}, "dg"}, {{"g"}, "dg_gamma"}, {{"g", "g_gamma"}, ""}};
  for (const auto& [without, gradient] : gates)
    for (const bool state : {true, false}) {
      Case c = case_of(GetParam(), {1, 20, 1, 8, 8, {}}, Dtype::bf16, Dtype::bf16, "mild", 1);
      c.initial_state = state;
      c.without = without;
      std::set<std::string> expected = {"dq", "dk", "dv"}, got;
      if (!gradient.empty()) expected.insert(gradient);
      if (state) expected.insert("dinitial_state");
      for (const auto& [name, tensor] : judged_run(c).outcome.outputs) got.insert(name);
      EXPECT_EQ(got, expected) << token_of(c);
    }
}

TEST_P(SimpleGlaGradients, AreTheSameBitsWithoutAGateAsWithZeros) {
  for (const Dtype dtype : dtypes) {
    Case with = case_of(GetParam(), {1, 150, 1, 24, 40, {}}, dtype, Dtype::bf16, "none", 2), without = with;
    without.without = {"g", "g_gamma"};
    const JudgedRun a = judged_run(with), b = judged_run(without);
    for (const char* output : {"dq", "dk", "dv", "dinitial_state"})
      EXPECT_EQ(bits_of(a.outcome, output), bits_of(b.outcome, output)) << output << ' ' << token_of(with);
  }
}

/// Outside the domain, but harmless: e^g is 0, and so is the gate's gradient.
TEST_P(SimpleGlaGradients, AreFiniteWhereAGateIsMinusInfinity) {
  for (const Dtype dtype : dtypes) {
    const Case c = case_of(GetParam(), {1, 100, 1, 20, 24, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
    TensorMap inputs = draw_inputs(c, operator_of(GetParam()));
    Tensor& g = inputs.at("g");
    for (int64_t i = 0; i < g.size(); i += 7) g.set(i, -std::numeric_limits<double>::infinity());
    const Outcome outcome = outcome_of(c, inputs);
    for (const auto& [name, tensor] : outcome.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_TRUE(std::isfinite(tensor.value(i))) << tensor.element_name(i) << ' ' << token_of(c);
    for (int64_t i = 0; i < g.size(); i += 7) ASSERT_EQ(outcome.outputs.at("dg").value(i), 0) << i;
  }
}

/// dg_t = e^{g_t} <S_{t-1}, G_t> may be far below the q dq and k dk that other formulas take the difference
/// of.
TEST_P(SimpleGlaGradients, OfGatesKeepTheirRelativePrecisionWhereTheyAreTiny) {
  for (const Dtype dtype : dtypes) {
    Case c = case_of(GetParam(), {1, 150, 1, 16, 16, {}}, dtype, Dtype::fp32, "constant:-30", 2);
    c.values = "positive";  // nothing cancels: the companion is the value
    const Operator& op = operator_of(GetParam());
    const TensorMap inputs = draw_inputs(c, op);
    const JudgedRun run = expect_within_bound(c);
    Problem problem;
    problem.sizes = sizes_of(c), problem.scale = scale_of(c, op), problem.inputs = &inputs;
    const ReferenceResult exact = op.evaluate_adjoint(problem);
    const auto dg = std::find_if(exact.outputs.begin(), exact.outputs.end(),
                                 [](const ReferenceOutput& output) { return output.name == "dg"; });
    ASSERT_NE(dg, exact.outputs.end());
    const Tensor& got = run.outcome.outputs.at("dg");
    for (int64_t i = 0; i < got.size(); ++i) {
      EXPECT_LT(dg->mid[static_cast<size_t>(i)], 1e-6);
      EXPECT_NEAR(got.value(i) / dg->mid[static_cast<size_t>(i)], 1, 0x1p-5) << got.element_name(i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachMode, SimpleGlaGradients, testing::ValuesIn(kernels_of({"simple_gla"})),
                         test_name);

TEST(FusedChunkGradients, HaveTheBitsOfTheChunkedKernel) {
  for (const Dtype dtype : dtypes) {
    const Case fused =
        case_of("simple_gla.fused_chunk", {1, 130, 2, 24, 40, {}}, dtype, Dtype::bf16, "logsigmoid", 4);
    Case chunked = fused;
    chunked.kernel = "simple_gla.chunk";
    const TensorMap inputs = draw_inputs(fused, operator_of(fused.kernel));
    const Outcome a = outcome_of(fused, inputs), b = outcome_of(chunked, inputs);
    for (const auto& [name, tensor] : a.outputs) EXPECT_EQ(tensor.data, b.outputs.at(name).data) << name;
  }
}

/// Tokens read at once but not there must leave G alone, the sign of a zero included: else a run that is
/// resumed from a gradient would have other bits than a whole one.
TEST(SimpleGlaRecurrentGradients, TokensThatAreNotThereLeaveAZeroItsSign) {
  for (const double scale : {1.0, -1.0}) {
    Case c = case_of("simple_gla.fused_recurrent", {1, 3, 1, 4, 5, {}}, Dtype::fp32, Dtype::fp32, "none", 2);
    c.scale = scale, c.final_state_gradient = true;
    TensorMap inputs = draw_inputs(c, operator_of(c.kernel));
    Tensor &cotangent = inputs.at("dfinal_state"), &d_o = inputs.at("do"), &q = inputs.at("q");
    for (int64_t i = 0; i < cotangent.size(); ++i) cotangent.set(i, -0.0);
    for (int64_t i = 0; i < q.size(); ++i) q.set(i, 0.0);
    for (int64_t i = 0; i < d_o.size(); ++i) d_o.set(i, scale < 0 ? 1.0 : -1.0);  // scale q do = -0
    EXPECT_EQ(bits_of(outcome_of(c, inputs), "dinitial_state"), cotangent.data) << scale;
  }
}

}  // namespace
}  // namespace assay
