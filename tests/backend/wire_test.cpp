#include "src/base/backend/wire.h"

#include <gtest/gtest.h>

#include "tests/backend/small_plan.h"

namespace assay {
namespace {

TEST(Wire, PlanComesBackAsItWas) {
  Plan plan = small_plan();
  plan.launches[0].grid = {7, 8, 9};
  plan.launches[1].shared_bytes = 12345;
  plan.launches[1].arguments = {
      PointerArgument{}, PointerArgument{"y", 1 << 20}, int32_t{-1}, int64_t{1} << 40, 0.1f, 0.1, int8_t{-3},
      int16_t{-300}};
  plan.workspaces.push_back({"copy of x", 8, "x"});
  plan.layouts["x"] = {{2, 3}, {1, 7}, 5, 40};
  WireWriter out;
  out.plan(plan);
  const Plan back = WireReader(out.bytes).plan();
  WireWriter again;
  again.plan(back);
  EXPECT_EQ(again.bytes, out.bytes);
  EXPECT_EQ(back.kernel, plan.kernel);
  EXPECT_EQ(*back.modules.at(0).ptx, kPtx);
  EXPECT_EQ(back.workspaces.at(0).bytes, 100);
  EXPECT_EQ(back.workspaces.at(1).copy_of, "x");
  EXPECT_EQ(back.layouts, plan.layouts);
  EXPECT_EQ(back.outputs.at(0).axes, plan.outputs[0].axes);
  EXPECT_EQ(back.constants.at(0).value(1), 20);
  EXPECT_EQ(back.launches.at(0).grid, plan.launches[0].grid);
  EXPECT_EQ(back.launches.at(0).block, plan.launches[0].block);
  EXPECT_EQ(back.launches.at(1).shared_bytes, 12345u);
  const auto& arguments = back.launches[1].arguments;
  ASSERT_EQ(arguments.size(), 8u);
  EXPECT_EQ(std::get<PointerArgument>(arguments[0]).buffer, "");
  EXPECT_EQ(std::get<PointerArgument>(arguments[1]).buffer, "y");
  EXPECT_EQ(std::get<PointerArgument>(arguments[1]).offset, 1 << 20);
  EXPECT_EQ(std::get<int32_t>(arguments[2]), -1);
  EXPECT_EQ(std::get<int64_t>(arguments[3]), int64_t{1} << 40);
  EXPECT_EQ(std::get<float>(arguments[4]), 0.1f);
  EXPECT_EQ(std::get<double>(arguments[5]), 0.1);
  EXPECT_EQ(std::get<int8_t>(arguments[6]), -3);
  EXPECT_EQ(std::get<int16_t>(arguments[7]), -300);
}

TEST(Wire, OutcomeComesBackWithTrapAndTensors) {
  Outcome outcome;
  outcome.seconds = 0.25;
  outcome.outputs.emplace("o", Tensor("o", Dtype::bf16, {{"T", 2}, {"V", 0}}));
  outcome.outputs.emplace("final_state", small_inputs().at("x"));
  outcome.trap = Trap{.kind = "hang", .message = "one line"};
  outcome.trap->where.function = "f";
  WireWriter out;
  out.outcome(outcome);
  const Outcome back = WireReader(out.bytes).outcome();
  ASSERT_TRUE(back.trap);
  EXPECT_EQ(back.trap->kind, "hang");
  EXPECT_EQ(back.trap->message, "one line");
  EXPECT_EQ(back.trap->where.function, "f");
  EXPECT_EQ(back.seconds, 0.25);
  EXPECT_EQ(back.outputs.at("o").axes, outcome.outputs.at("o").axes);
  EXPECT_EQ(back.outputs.at("final_state").data, outcome.outputs.at("final_state").data);
}

}  // namespace
}  // namespace assay
