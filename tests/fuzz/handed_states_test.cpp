#include "fuzz/handed_states.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TensorMap named(std::initializer_list<const char*> names, std::vector<Axis> axes) {
  TensorMap tensors;
  for (const char* name : names) tensors.emplace(name, Tensor(name, Dtype::fp32, axes));
  return tensors;
}

/// Every operator hands on each state that it starts from and leaves, and no other tensor.
TEST(HandedStates, AreTheStatesOfEveryOperatorUnderTheNamesOfTheNextRun) {
  for (const Operator& op : operators()) {
    TensorMap left = named({"o"}, {{"T", 1}}), gradients;
    std::vector<std::string> starts, cotangents;
    for (const ArgumentSpec& output : op.outputs)
      if (output.role == Role::state) {
        left.merge(named({std::string(output.name).c_str()}, {{"N", 1}}));
        cotangents.push_back("d" + std::string(output.name));
      }
    for (const ArgumentSpec& input : op.inputs)
      if (input.role == Role::state) {
        starts.emplace_back(input.name);
        gradients.merge(named({("d" + starts.back()).c_str()}, {{"N", 1}}));
      }
    const TensorMap handed = states_as_inputs(op, left), back = gradients_as_cotangents(op, gradients);
    EXPECT_EQ(handed.size(), starts.size()) << op.name;
    EXPECT_EQ(back.size(), cotangents.size()) << op.name;
    for (const std::string& name : starts)
      EXPECT_TRUE(handed.contains(name) && handed.at(name).name == name) << op.name << " " << name;
    for (const std::string& name : cotangents) EXPECT_TRUE(back.contains(name)) << op.name << " " << name;
  }
}

TEST(HandedStates, SharedGradientsAreLeftOut) {
  TensorMap tensors = named({"dq"}, {{"T", 2}});
  tensors.merge(named({"dinitial_state"}, {{"N", 1}}));
  tensors.merge(named({"du"}, {{"H", 2}}));
  EXPECT_EQ(unshared(tensors).size(), 2u);
  EXPECT_FALSE(unshared(tensors).contains("du"));
}

TEST(HandedStates, AllInitialStatesAreThereOrNone) {
  const Operator& op = find_operator("gsa");
  const Case none = with_state(Case{}, op, false), all = with_state(none, op, true);
  EXPECT_FALSE(none.initial_state);
  EXPECT_TRUE(all.initial_state);
  EXPECT_EQ(none.without.size(), 2u);
  EXPECT_TRUE(all.without.empty());
}

}  // namespace
}  // namespace assay
