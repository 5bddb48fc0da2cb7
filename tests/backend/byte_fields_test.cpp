#include "src/base/fields/byte_fields.h"

#include <gtest/gtest.h>

#include "src/base/program/outcome.h"
#include "tests/backend/small_program.h"

namespace assay {
namespace byte_fields_test {

TEST(ByteFields, ProgramComesBackAsItWas) {
  Program program = small_program();
  const TileMap tiles{.element = TileMap::Element::bf16,
                      .sizes = {64, 3},
                      .strides = {128},
                      .box = {32, 1},
                      .steps = {1, 1},
                      .swizzle = TileMap::Swizzle::of_64_bytes,
                      .outside = TileMap::Outside::nans};
  program.launches[0].grid = {7, 8, 9};
  program.launches[1].shared_bytes = 12345;
  program.launches[1].arguments = {
      PointerArgument{},
      PointerArgument{"y", 1 << 20},
      int32_t{-1},
      int64_t{1} << 40,
      0.1f,
      0.1,
      int8_t{-3},
      int16_t{-300},
      Argument::of_bytes(192).put(8, PointerArgument{"x", 4}).put(64, PointerArgument{"y"}, tiles)};
  program.aliases = {{"z", "w", 16}};
  program.workspaces.push_back({"copy of x", 8, "x"});
  program.blocks = "0,last";
  program.layouts["x"] = {{2, 3}, {1, 7}, 5, 40};
  ByteWriter out;
  out.put(program);
  const auto back = ByteReader(out.bytes).get<Program>();
  ByteWriter again;
  again.put(back);
  EXPECT_EQ(again.bytes, out.bytes);
  EXPECT_EQ(back.name, program.name);
  EXPECT_EQ(*back.modules.at(0).ptx, kPtx);
  EXPECT_EQ(back.workspaces.at(0).bytes, 100);
  EXPECT_EQ(back.workspaces.at(1).copy_of, "x");
  EXPECT_EQ(back.blocks, "0,last");
  EXPECT_EQ(back.layouts, program.layouts);
  EXPECT_EQ(back.outputs.at(0).axes, program.outputs[0].axes);
  EXPECT_EQ(back.constants.at(0).value(1), 20);
  EXPECT_EQ(back.launches.at(0).grid, program.launches[0].grid);
  EXPECT_EQ(back.launches.at(0).block, program.launches[0].block);
  EXPECT_EQ(back.launches.at(1).shared_bytes, 12345u);
  const auto& arguments = back.launches[1].arguments;
  ASSERT_EQ(arguments.size(), 9u);
  EXPECT_EQ(arguments, program.launches[1].arguments);
  EXPECT_EQ(integer_of(arguments[7]), -300);
  ASSERT_EQ(back.aliases.size(), 1u);
  EXPECT_EQ(back.aliases[0].name + back.aliases[0].storage, "zw");
  EXPECT_EQ(back.aliases[0].offset, 16);
}

TEST(ByteFields, OutcomeComesBackWithTrapAndTensors) {
  Outcome outcome;
  outcome.seconds = 0.25;
  outcome.outputs.emplace("o", Tensor("o", Dtype::bf16, {{"T", 2}, {"V", 0}}));
  outcome.outputs.emplace("final_state", small_inputs().at("x"));
  outcome.trap = Trap{.kind = TrapKind::hang, .message = "one line"};
  outcome.trap->where.function = "f";
  outcome.trap->block = {1, 2, 3};
  outcome.exponents.push_back({.instruction = "ex2.approx.f32", .min = -3, .max = 2, .count = 5});
  outcome.branches.push_back({"f", {1, 3}});
  ByteWriter out;
  out.put(outcome);
  const auto back = ByteReader(out.bytes).get<Outcome>();
  ASSERT_TRUE(back.trap);
  EXPECT_EQ(back.trap->kind, TrapKind::hang);
  EXPECT_EQ(back.trap->message, "one line");
  EXPECT_EQ(back.trap->where.function, "f");
  EXPECT_EQ(back.trap->block, outcome.trap->block);
  ASSERT_EQ(back.exponents.size(), 1u);
  EXPECT_EQ(back.exponents[0].instruction, "ex2.approx.f32");
  EXPECT_EQ(back.exponents[0].count, 5u);
  ASSERT_EQ(back.branches.size(), 1u);
  EXPECT_EQ(back.branches[0].sides, outcome.branches[0].sides);
  EXPECT_EQ(back.seconds, 0.25);
  EXPECT_EQ(back.outputs.at("o").axes, outcome.outputs.at("o").axes);
  EXPECT_EQ(back.outputs.at("final_state").data, outcome.outputs.at("final_state").data);
}

}  // namespace byte_fields_test
}  // namespace assay
