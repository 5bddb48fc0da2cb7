// Gradients of the gla kernels on the machine, against the proved reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace gla_backward_test {

struct Shape {
  int64_t B, T, H, K, V;
  std::vector<int64_t> cu_seqlens;
};

/// Around the edges of tokens read at once, tiles, chunks and blocks of channels; aligned and not.
const Shape shapes[] = {
    {1, 1, 1, 1, 1, {}},     {2, 17, 1, 16, 24, {}},  {1, 64, 2, 8, 40, {}},
    {1, 80, 1, 33, 7, {}},   {1, 130, 1, 72, 16, {}}, {1, 63, 1, 100, 130, {}},
    {1, 71, 1, 20, 256, {}}, {1, 70, 1, 256, 12, {}}, {1, 150, 1, 40, 16, {0, 0, 15, 16, 100, 100, 150}},
};
const char* const profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                "reset", "contrast",   "ladder",   "extreme"};
const Dtype dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

Case case_of(const char* kernel, const Shape& shape, Dtype dtype, Dtype gate, const char* decay,
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

class GlaGradients : public testing::TestWithParam<const char*> {};

TEST_P(GlaGradients, StayWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const char* profile : profiles) {
      const Shape& shape = shapes[(seed + seed / 9) % std::size(shapes)];
      expect_within_bound(case_of(GetParam(), shape, dtype, dtypes[seed % 3], profile, seed));
      ++seed;
    }
}

TEST_P(GlaGradients, AreExactWhereNoOperationRounds) {
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

TEST_P(GlaGradients, ExistForTheInputsThatAreThere) {
  for (const bool gate : {true, false})
    for (const bool state : {true, false}) {
      Case c = case_of(GetParam(), {1, 20, 1, 8, 8, {}}, Dtype::bf16, Dtype::bf16, "none", 1);
      c.initial_state = state;
      if (!gate) c.without = {"g"};
      std::set<std::string> expected = {"dq", "dk", "dv"}, got;
      if (gate) expected.insert("dg");
      if (state) expected.insert("dinitial_state");
      for (const auto& [name, tensor] : judged_run(c).outcome.outputs) got.insert(name);
      EXPECT_EQ(got, expected) << token_of(c);
    }
}

TEST_P(GlaGradients, PassTheFinalStatesGradientOnWhereThereAreNoTokens) {
  const Operator& op = find_operator("gla");
  for (const bool cotangent : {true, false}) {
    Case c = case_of(GetParam(), {1, 0, 2, 24, 16, {}}, Dtype::bf16, Dtype::fp32, "mild", 2);
    c.final_state_gradient = cotangent;
    const TensorMap inputs = draw_inputs(c, op);
    const Outcome outcome =
        vm::run(find_kernel(GetParam()).plan(resolve_unchecked(c, op), inputs), inputs, {});
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    const Tensor zeros("zeros", Dtype::fp32, outcome.outputs.at("dinitial_state").axes);
    EXPECT_EQ(bits_of(outcome, "dinitial_state"), cotangent ? inputs.at("dfinal_state").data : zeros.data);
  }
}

/// Outside the domain, but harmless: e^g is 0, and so is the gate's gradient.
TEST_P(GlaGradients, AreFiniteWhereAGateIsMinusInfinity) {
  const Operator& op = find_operator("gla");
  for (const Dtype dtype : dtypes) {
    const Case c = case_of(GetParam(), {1, 100, 1, 20, 24, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
    TensorMap inputs = draw_inputs(c, op);
    Tensor& g = inputs.at("g");
    for (int64_t i = 0; i < g.size(); i += 7) g.set(i, -std::numeric_limits<double>::infinity());
    const Outcome outcome =
        vm::run(find_kernel(GetParam()).plan(resolve_unchecked(c, op), inputs), inputs, {});
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    for (const auto& [name, tensor] : outcome.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_TRUE(std::isfinite(tensor.value(i))) << tensor.element_name(i) << ' ' << token_of(c);
    for (int64_t i = 0; i < g.size(); i += 7) ASSERT_EQ(outcome.outputs.at("dg").value(i), 0) << i;
  }
}

/// dg_t = e^{g_t} <S_{t-1}, G_t> may be far below the q dq and k dk that other formulas take the difference
/// of.
TEST_P(GlaGradients, OfGatesKeepTheirRelativePrecisionWhereTheyAreTiny) {
  for (const Dtype dtype : dtypes) {
    Case c = case_of(GetParam(), {1, 150, 1, 16, 16, {}}, dtype, Dtype::fp32, "constant:-30", 2);
    c.values = "positive";  // nothing cancels: the companion is the value
    const TensorMap inputs = draw_inputs(c, find_operator("gla"));
    const JudgedRun run = expect_within_bound(c);
    Problem problem;
    problem.sizes = sizes_of(c), problem.scale = scale_of(c, find_operator("gla")), problem.inputs = &inputs;
    problem.adjoint = find_kernel(c.kernel).adjoint_arithmetic(resolve(c, find_operator("gla")));
    const ReferenceResult exact = find_operator("gla").evaluate_adjoint(problem);
    const ReferenceOutput& dg = exact.outputs.at(3);
    const Tensor& got = run.outcome.outputs.at("dg");
    for (int64_t i = 0; i < got.size(); ++i) {
      const double mid = dg.mid[static_cast<size_t>(i)], bound = dg.bound[static_cast<size_t>(i)];
      EXPECT_LT(mid, 1e-8);
      EXPECT_LE(std::fabs(got.value(i) - mid), bound) << got.element_name(i);
      EXPECT_LT(bound, mid / 2) << got.element_name(
          i);  // the declared arithmetic promises relative precision
    }
  }
}

/// Tokens read at once but not there must leave G alone, the sign of a zero included: else a run that is
/// resumed from a gradient would have other bits than a whole one.
TEST(GlaRecurrentGradients, TokensThatAreNotThereLeaveAZeroItsSign) {
  const Operator& op = find_operator("gla");
  for (const double scale : {1.0, -1.0}) {
    Case c = case_of("gla.fused_recurrent", {1, 3, 1, 4, 5, {}}, Dtype::fp32, Dtype::fp32, "none", 2);
    c.scale = scale, c.final_state_gradient = true;
    TensorMap inputs = draw_inputs(c, op);
    Tensor &cotangent = inputs.at("dfinal_state"), &d_o = inputs.at("do"), &q = inputs.at("q");
    for (int64_t i = 0; i < cotangent.size(); ++i) cotangent.set(i, -0.0);
    for (int64_t i = 0; i < q.size(); ++i) q.set(i, 0.0);
    for (int64_t i = 0; i < d_o.size(); ++i) d_o.set(i, scale < 0 ? 1.0 : -1.0);  // scale q do = -0
    const Outcome outcome = vm::run(find_kernel(c.kernel).plan(resolve_unchecked(c, op), inputs), inputs, {});
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    EXPECT_EQ(bits_of(outcome, "dinitial_state"), cotangent.data) << scale;
  }
}

struct Planted {
  const char* kernel;
  const char* decay;
  const char* output;
  bool nonfinite;  ///< else a finite value beyond its bound
};

TEST(GlaGradientDefects, AreFoundInTheGradientsTheyReach) {
  setenv("ASSAY_CACHE", (testing::TempDir() + "assay-cache").c_str(), 1);
  for (const Planted& planted : {Planted{"gla.chunk@S2c", "constant:-4", "dq", true},
                                 {"gla.chunk@G1", "mild", "dk", false},
                                 {"gla.chunk@G2", "mild", "dg", false},
                                 {"gla.fused_recurrent@G1", "mild", "dg", false}}) {
    const Case broken =
        case_of(planted.kernel, {1, 80, 1, 16, 8, {}}, Dtype::bf16, Dtype::fp32, planted.decay, 2);
    int64_t found = 0;
    for (const OutputComparison& output : judged_run(broken).outputs)
      if (output.name == planted.output) found = planted.nonfinite ? output.nonfinite : output.violation;
    EXPECT_GT(found, 0) << token_of(broken);
    Case clean = broken;
    clean.kernel = clean.kernel.substr(0, clean.kernel.find('@'));
    expect_within_bound(clean);
  }
}

INSTANTIATE_TEST_SUITE_P(EachMode, GlaGradients, testing::Values("gla.chunk", "gla.fused_recurrent"));

}  // namespace gla_backward_test
}  // namespace assay
