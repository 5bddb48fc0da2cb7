// Gradients of the gated family's kernels on the machine, against the proved reference: what holds for each
// of them. What only one of them has is tested in its own folder.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/gradient_cases.h"

namespace assay {
namespace {

/// An operator of the family: its gate of every token, and which of its gates' gradients there are without
/// which inputs.
struct Member {
  std::string gate;
  std::vector<std::pair<std::set<std::string>, std::string>> gradients;
};
const std::map<std::string, Member> members = {
    {"gla", {"g", {{{}, "dg"}, {{"g"}, ""}}}},
    {"rwkv6", {"w", {{{}, "dw"}}}},
    {"simple_gla", {"g", {{{}, "dg"}, {{"g"}, "dg_gamma"}, {{"g", "g_gamma"}, ""}}}},
    {"linear_attn", {"", {{{}, ""}}}},
    {"retention", {"", {{{}, ""}}}},
    {"lightning_attn", {"", {{{}, ""}}}},
};
std::vector<std::string> kernels_of_family() {
  std::set<std::string> names;
  for (const auto& [name, member] : members) names.insert(name);
  return kernels_with_gradients(names);
}

class GatedGradients : public testing::TestWithParam<std::string> {
 protected:
  const Operator& op = find_operator(find_kernel(GetParam()).operator_name);
  const Member& member = members.at(std::string(op.name));
};

TEST_P(GatedGradients, StayWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  for (uint64_t seed = 0; seed < gradient_cases; ++seed) expect_within_bound(gradient_case(GetParam(), seed));
}

TEST_P(GatedGradients, AreExactWhereNoOperationRounds) {
  if (op.inexact) GTEST_SKIP() << "its heads decay";
  for (const Dtype dtype : gradient_dtypes)
    for (const Direction direction : {Direction::backward, Direction::both}) {
      Case c = gradient_case(GetParam(), {1, 140, 1, 40, 24, {}}, dtype, Dtype::fp32, "none", 4);
      c.values = "exact", c.direction = direction;
      for (const OutputComparison& output : judged_run(c).outputs) {
        EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got "
                                   << output.worst.got << " expected " << output.worst.expected;
        if (output.name != "d" + member.gate) {
          EXPECT_EQ(output.worst.bound, 0) << output.name;
        }
      }
    }
}

TEST_P(GatedGradients, ExistForTheInputsThatAreThere) {
  for (const auto& [without, gradient] : member.gradients)
    for (const bool state : {true, false}) {
      Case c = gradient_case(GetParam(), {1, 20, 1, 8, 8, {}}, Dtype::bf16, Dtype::bf16, "none", 1);
      c.initial_state = state, c.without = without;
      std::set<std::string> expected, got;
      for (const ArgumentSpec& input : op.inputs)
        if (!input.optional) expected.insert("d" + std::string(input.name));
      if (!gradient.empty()) expected.insert(gradient);
      if (state) expected.insert("dinitial_state");
      for (const auto& [name, tensor] : judged_run(c).outcome.outputs) got.insert(name);
      EXPECT_EQ(got, expected) << token_of(c);
    }
}

/// The final state's gradient is passed on, and all others are zero where they have elements at all.
TEST_P(GatedGradients, WithoutTokensAreThoseOfTheStatePassedOn) {
  for (const bool cotangent : {true, false}) {
    Case c = gradient_case(GetParam(), {1, 0, 2, 24, 16, {}}, Dtype::bf16, Dtype::fp32, "mild", 2);
    c.final_state_gradient = cotangent;
    const TensorMap inputs = draw_inputs(c, op);
    for (const auto& [name, tensor] : outcome_of(c, inputs).outputs) {
      const bool passed_on = name == "dinitial_state" && cotangent;
      const Tensor zeros("zeros", tensor.dtype, tensor.axes);
      EXPECT_EQ(tensor.data, passed_on ? inputs.at("dfinal_state").data : zeros.data) << name;
    }
  }
}

/// Outside the domain, but harmless: e^g is 0, and so is the gate's gradient.
TEST_P(GatedGradients, AreFiniteWhereAGateIsMinusInfinity) {
  if (member.gate.empty()) GTEST_SKIP() << "no gate";
  for (const Dtype dtype : gradient_dtypes) {
    const Case c = gradient_case(GetParam(), {1, 100, 1, 20, 24, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
    TensorMap inputs = draw_inputs(c, op);
    Tensor& g = inputs.at(member.gate);
    for (int64_t i = 0; i < g.size(); i += 7) g.set(i, -std::numeric_limits<double>::infinity());
    const Outcome outcome = outcome_of(c, inputs);
    for (const auto& [name, tensor] : outcome.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_TRUE(std::isfinite(tensor.value(i))) << tensor.element_name(i) << ' ' << token_of(c);
    const Tensor& gradient = outcome.outputs.at("d" + member.gate);
    for (int64_t i = 0; i < g.size(); i += 7) ASSERT_EQ(gradient.value(i), 0) << i;
  }
}

/// dg_t = e^{g_t} <S_{t-1}, G_t> may be far below the q dq and k dk that other formulas take the difference
/// of: the declared arithmetic promises relative precision.
TEST_P(GatedGradients, OfGatesKeepTheirRelativePrecisionWhereTheyAreTiny) {
  if (member.gate.empty()) GTEST_SKIP() << "no gate";
  const std::string gradient = "d" + member.gate;
  for (const Dtype dtype : gradient_dtypes) {
    Case c = gradient_case(GetParam(), {1, 150, 1, 16, 16, {}}, dtype, Dtype::fp32, "constant:-30", 2);
    c.values = "positive";  // nothing cancels: the companion is the value
    const TensorMap inputs = draw_inputs(c, op);
    const JudgedRun run = expect_within_bound(c);
    Problem problem;
    problem.sizes = sizes_of(c), problem.scale = scale_of(c, op), problem.inputs = &inputs;
    problem.adjoint = find_kernel(c.kernel).adjoint_arithmetic(resolve(c, op));
    for (const ReferenceOutput& exact : op.evaluate_adjoint(problem).outputs) {
      if (exact.name != gradient) continue;
      const Tensor& got = run.outcome.outputs.at(gradient);
      for (int64_t i = 0; i < got.size(); ++i) {
        const double mid = exact.mid[static_cast<size_t>(i)], bound = exact.bound[static_cast<size_t>(i)];
        EXPECT_LT(mid, 1e-6);
        EXPECT_LE(std::fabs(got.value(i) - mid), bound) << got.element_name(i);
        EXPECT_LE(bound, mid / 2) << got.element_name(i);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, GatedGradients, testing::ValuesIn(kernels_of_family()), kernel_test_name);

/// Tokens read at once but not there must leave G alone, the sign of a zero included: else a run that is
/// resumed from a gradient would have other bits than a whole one.
TEST(RecurrentGradients, TokensThatAreNotThereLeaveAZeroItsSign) {
  for (const char* kernel : {"gla.fused_recurrent", "simple_gla.fused_recurrent"})
    for (const double scale : {1.0, -1.0}) {
      Case c = gradient_case(kernel, {1, 3, 1, 4, 5, {}}, Dtype::fp32, Dtype::fp32, "none", 2);
      c.scale = scale, c.final_state_gradient = true;
      TensorMap inputs = draw_inputs(c, operator_of(c));
      Tensor &cotangent = inputs.at("dfinal_state"), &d_o = inputs.at("do"), &q = inputs.at("q");
      for (int64_t i = 0; i < cotangent.size(); ++i) cotangent.set(i, -0.0);
      for (int64_t i = 0; i < q.size(); ++i) q.set(i, 0.0);
      for (int64_t i = 0; i < d_o.size(); ++i) d_o.set(i, scale < 0 ? 1.0 : -1.0);  // scale q do = -0
      EXPECT_EQ(bits_of(outcome_of(c, inputs), "dinitial_state"), cotangent.data) << kernel << ' ' << scale;
    }
}

}  // namespace
}  // namespace assay
