// Evaluation from transcriptions: sharing, packing, absence, and what is refused.
#include "reference/literal_evaluation.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

const ReferenceOutput& named(const ReferenceResult& r, const std::string& name) {
  for (const ReferenceOutput& out : r.outputs)
    if (out.name == name) return out;
  throw BadInput("no output " + name);
}

TEST(LiteralEvaluation, query_heads_in_groups_equal_heads_repeated_and_their_gradients_add_up) {
  RandomShape grouped;
  grouped.B = 2, grouped.T = 9, grouped.H = 2, grouped.HV = 4, grouped.cotangents = true;
  const Operator& op = find_operator("gsa");
  RandomProblem p, wide;
  draw_problem_of(op, "logsigmoid", grouped, 3, p), draw_problem_of(op, "logsigmoid", grouped, 3, wide);
  wide.problem.sizes.H = 4;
  for (const ArgumentSpec& a : op.inputs) {
    Tensor& from = p.at(std::string(a.name));
    const auto axis =
        std::find_if(from.axes.begin(), from.axes.end(), [](const Axis& x) { return x.name == "H"; });
    if (axis == from.axes.end()) continue;
    std::vector<Axis> axes = from.axes;
    const auto at = axis - from.axes.begin();
    axes[static_cast<size_t>(at)].size = 4;
    int64_t width = 1;
    for (size_t i = static_cast<size_t>(at) + 1; i < axes.size(); ++i) width *= axes[i].size;
    Tensor to(from.name, from.dtype, axes);
    for (int64_t i = 0; i < to.size(); ++i) {
      const int64_t c = i % width, h = i / width % 4, row = i / width / 4;
      to.set(i, from.value((row * 2 + h / 2) * width + c));
    }
    wide.inputs[from.name] = to;
  }
  // Final states of repeated heads are the group's, and take its gradient once.
  for (const char* name : {"dhkt", "dhvt"}) p.inputs.erase(name), wide.inputs.erase(name);
  const auto a = op.evaluate(p.problem), b = op.evaluate(wide.problem);
  for (size_t i = 0; i < a.outputs[0].mid.size(); ++i)
    EXPECT_LE(std::fabs(a.outputs[0].mid[i] - b.outputs[0].mid[i]),
              a.outputs[0].rad[i] + b.outputs[0].rad[i]);
  const auto da = op.evaluate_adjoint(p.problem), db = op.evaluate_adjoint(wide.problem);
  const ReferenceOutput &dk = named(da, "dk"), &repeated = named(db, "dk");
  for (size_t i = 0; i < dk.mid.size(); ++i) {
    const size_t K = 4, c = i % K, h = i / K % 2, row = i / K / 2, first = (row * 4 + 2 * h) * K + c;
    const double sum = repeated.mid[first] + repeated.mid[first + K];
    EXPECT_LE(std::fabs(dk.mid[i] - sum), dk.rad[i] + repeated.rad[first] + repeated.rad[first + K] +
                                              0x1p-52 * repeated.companion[first]);
  }
}

TEST(LiteralEvaluation,
     gradients_of_absent_inputs_are_absent_and_those_of_shared_ones_add_up_over_sequences) {
  RandomShape shape;
  shape.B = 3, shape.T = 6, shape.H = 2, shape.cotangents = true;
  const Operator& op = find_operator("gate_softplus");
  RandomProblem p;
  draw_problem_of(op, "none", shape, 4, p);
  const auto all = op.evaluate_adjoint(p.problem);
  double sum = 0, size = 0;
  const ReferenceOutput& dx = named(all, "dx");
  for (size_t i = 1; i < dx.mid.size(); i += 8)
    sum += dx.mid[i], size += dx.companion[i];  // head 0, channel 1
  EXPECT_NEAR(named(all, "dbias").mid[1], sum, 0x1p-40 * size);
  p.inputs.erase("bias");
  const auto without = op.evaluate_adjoint(p.problem);
  EXPECT_EQ(without.outputs.size(), 2u);
  EXPECT_THROW(named(without, "dbias"), BadInput);
}

TEST(LiteralEvaluation, does_not_depend_on_the_number_of_threads) {
  RandomShape shape;
  shape.B = 3, shape.T = 20, shape.H = 2, shape.cotangents = true;
  for (const char* name : {"gsa", "gate_softplus", "merge_heads", "rwkv7"}) {
    RandomProblem p;
    draw_problem_of(find_operator(name), "logsigmoid", shape, 5, p);
    const auto one = find_operator(name).evaluate_adjoint(p.problem);
    p.problem.threads = 3;
    const auto three = find_operator(name).evaluate_adjoint(p.problem);
    for (size_t o = 0; o < one.outputs.size(); ++o) {
      EXPECT_EQ(one.outputs[o].mid, three.outputs[o].mid) << name << " " << one.outputs[o].name;
      EXPECT_EQ(one.outputs[o].bound, three.outputs[o].bound) << name << " " << one.outputs[o].name;
    }
  }
}

TEST(LiteralEvaluation, of_inputs_that_are_not_finite_is_undecided_and_says_so) {
  RandomShape shape;
  const Operator& op = find_operator("hgrn");
  RandomProblem p;
  draw_problem_of(op, "logsigmoid", shape, 6, p);
  p.problem.arithmetic = recurrent_fp32(1);
  EXPECT_TRUE(op.evaluate(p.problem).outputs[0].undecided.empty());
  p.at("x").set(3, std::numeric_limits<double>::infinity());
  const auto result = op.evaluate(p.problem);
  EXPECT_NE(result.outputs[0].undecided.find("not finite"), std::string::npos) << result.outputs[0].undecided;
  EXPECT_TRUE(std::isinf(result.outputs[0].rad[3]));
}

TEST(LiteralEvaluation, refuses_an_input_beside_the_one_it_stands_in_for) {
  RandomShape shape;
  RandomProblem p;
  draw_problem_of(find_operator("simple_gla"), "logsigmoid", shape, 7, p);
  Tensor gamma("g_gamma", Dtype::fp32, {{"H", 1}});
  p.inputs["g_gamma"] = gamma;
  EXPECT_THROW(find_operator("simple_gla").evaluate(p.problem), BadInput);
  p.inputs.erase("g");
  EXPECT_NO_THROW(find_operator("simple_gla").evaluate(p.problem));
}

}  // namespace
}  // namespace assay
