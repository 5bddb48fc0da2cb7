#include "kernels/inner_plan.h"

#include <gtest/gtest.h>

#include "kernels/kernel.h"

namespace assay {
namespace {

using namespace gated;

Program inner_plan() {
  Program plan;
  plan.modules = {{"m", "m.ptx", nullptr}};
  plan.workspaces = {{"states", 64}};
  plan.constants = {Tensor("sequences", Dtype::i64, {{"N", 1}})};
  plan.outputs = {{"o", Dtype::fp32, {{"T", 3}, {"V", 2}}}, {"final_state", Dtype::fp32, {{"K", 5}}}};
  Launch launch{.module = "m", .function = "f"};
  for (const char* name : {"q", "states", "sequences", "o", "final_state"})
    launch.arguments.push_back(PointerArgument{name, 8});
  launch.arguments.push_back(PointerArgument{});
  launch.arguments.push_back(int32_t{7});
  plan.launches = {launch};
  return plan;
}

std::vector<std::string> buffers_of(const Launch& launch) {
  std::vector<std::string> names;
  for (const Argument& argument : launch.arguments)
    if (const auto pointer = pointer_of(argument)) names.push_back(pointer->buffer);
  return names;
}

TEST(InnerPlan, RenamesInputsAndOutputsAndKeepsWhatIsItsOwnApart) {
  Program plan;
  plan.outputs = {{"final_state", Dtype::fp32, {{"K", 5}}}};
  add_inner_plan(plan, inner_plan(), {{"q", "q_fp32"}, {"o", "n"}}, "first_");
  ASSERT_EQ(plan.launches.size(), 1u);
  EXPECT_EQ(buffers_of(plan.launches[0]),
            (std::vector<std::string>{"q_fp32", "first_states", "first_sequences", "n", "final_state", ""}));
  EXPECT_EQ(pointer_of(plan.launches[0].arguments[0])->offset, 8);
  EXPECT_EQ(integer_of(plan.launches[0].arguments[6]), 7);
  EXPECT_EQ(plan.constants[0].name, "first_sequences");
}

TEST(InnerPlan, MakesAWorkspaceOfWhatIsNoOutput) {
  Program plan;
  add_inner_plan(plan, inner_plan(), {{"o", "n"}}, "");
  std::map<std::string, int64_t> bytes;
  for (const Workspace& workspace : plan.workspaces) bytes[workspace.name] = workspace.bytes;
  EXPECT_EQ(bytes, (std::map<std::string, int64_t>{{"states", 64}, {"n", 24}, {"final_state", 20}}));
}

TEST(InnerPlan, TakesAModuleAndAWorkspaceOnlyOnce) {
  Program plan;
  for (const char* prefix : {"a_", "b_"}) add_inner_plan(plan, inner_plan(), {}, prefix);
  EXPECT_EQ(plan.modules.size(), 1u);
  EXPECT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.workspaces.size(), 4u) << "a_states, o, final_state, b_states";
}

}  // namespace
}  // namespace assay
