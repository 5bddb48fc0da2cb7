#include "src/case/resolved_case.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/case/gated_operator.h"

namespace assay {
namespace {

Case two_heads() {
  Case c;
  c.kernel = "gated.test";
  c.T = 5, c.H = 2, c.K = 4, c.V = 3;
  return c;
}

std::vector<std::string> sized_names_of(const std::vector<SizedArgument>& arguments) {
  std::vector<std::string> names;
  for (const SizedArgument& argument : arguments) names.push_back(argument.shape.name);
  return names;
}

TEST(ResolvedCase, HoldsWhatTheRunTakesAndGives) {
  Case c = two_heads();
  c.direction = Direction::both, c.without = {"g"}, c.initial_state = true;
  const Operator op = gated_operator();
  const ResolvedCase r = resolve(c, op);
  EXPECT_EQ(sized_names_of(r.inputs), (std::vector<std::string>{"q", "k", "v", "initial_state", "do"}));
  EXPECT_EQ(sized_names_of(r.outputs),
            (std::vector<std::string>{"o", "final_state", "dq", "dk", "dv", "dinitial_state"}));
  EXPECT_TRUE(r.forward() && r.backward());
  EXPECT_EQ(r.inputs[2].shape.shape_text(), "[B=1,T=5,H=2,V=3]");
  EXPECT_EQ(r.inputs[2].shape.dtype, Dtype::bf16);
  EXPECT_EQ(r.inputs[3].shape.dtype, Dtype::fp32);
  EXPECT_EQ(r.sizes.HV, 2) << "as H";
  EXPECT_EQ(r.scale, 0.5);
  EXPECT_EQ(r.decay.profile->name, "logsigmoid");
  EXPECT_EQ(r.values->name, "normal");
}

TEST(ResolvedCase, AnEditedCaseIsResolvedAgain) {
  Case c = two_heads();
  const Operator op = gated_operator();
  const int64_t before = resolve(c, op).inputs[0].shape.size();
  c.T = 2, c.without = {"g"};
  const ResolvedCase r = resolve(c, op);
  EXPECT_EQ(r.inputs[0].shape.size() * 5, before * 2);
  EXPECT_EQ(sized_names_of(r.inputs), (std::vector<std::string>{"q", "k", "v"}));
  EXPECT_EQ(r.case_, c) << "the token is still there";
}

TEST(ResolvedCase, LayoutsStandBesideTheirInputs) {
  Case c = two_heads();
  c.layout = "heads-first,k=40:8:4:1,v=padded";
  const Operator op = gated_operator();
  for (const SizedArgument& input : resolve(c, op).inputs) {
    if (input.shape.name == "k")
      EXPECT_FALSE(input.layout) << "these strides lie row by row";
    else
      EXPECT_TRUE(input.layout) << input.shape.name;
  }
  EXPECT_TRUE(resolve_unchecked(c, op).inputs[0].layout);
}

TEST(ResolvedCase, DrawsWhatItsCaseDraws) {
  Case c = two_heads();
  c.overrides = {"q[0,1,0,2]=7"};
  const Operator op = gated_operator();
  const TensorMap inputs = draw_inputs(resolve(c, op)), same = draw_inputs(c, op);
  ASSERT_EQ(inputs.size(), 4u);
  for (const auto& [name, tensor] : inputs) EXPECT_EQ(tensor.data, same.at(name).data) << name;
  EXPECT_EQ(inputs.at("q").value((1 * 2 + 0) * 4 + 2), 7);
}

TEST(ResolvedCase, DirectionsHaveNames) {
  EXPECT_EQ(direction_of("backward"), Direction::backward);
  EXPECT_THROW(direction_of("sideways"), BadInput);
  try {
    direction_of("forwards");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "unknown direction 'forwards': did you mean 'forward'?");
  }
  EXPECT_EQ(usual_slots(gated_operator()), 0);
  EXPECT_EQ(usual_slots(find_operator("gsa")), 64);
  EXPECT_EQ(usual_slots(find_operator("gated_delta_product")), 2);
}

}  // namespace
}  // namespace assay
