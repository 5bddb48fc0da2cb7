// Structs, bytes and tensor maps among the arguments of a stranger's plan.
#include "kernels/composed_argument.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/foreign.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace composed_argument_test {

using nlohmann::json;

const std::string kPath =
    std::filesystem::temp_directory_path() / ("assay_composed_" + std::to_string(::getpid()));

/// An entry of as many parameters, each of 256 bytes as a wrapped tensor map is.
std::string ptx_of(size_t parameters) {
  std::string text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f(";
  for (size_t i = 0; i < parameters; ++i)
    text += std::string(i ? ", " : "") + ".param .align 64 .b8 f_param_" + std::to_string(i) + "[256]";
  return text + ")\n{\n ret;\n}\n";
}

/// A plan of linear_attn whose entry is given these beside a plain launch that passes the tensors.
Kernel kernel_of(const json& arguments, const json& more = json::object()) {
  json plan = json::parse(R"({
    "operator": "linear_attn", "dtypes": ["bf16"], "arithmetic": "fp32-recurrent",
    "omits": ["final_state", "o"], "accepts": "T > 0", "workspaces": [{"name": "ws", "bytes": "T * 64"}],
    "launches": [{"function": "f", "grid": ["T > 64 ? 0 : 1"], "block": 32}]
  })");
  plan["launches"][0]["arguments"] = arguments;
  plan.update(more);
  std::ofstream(kPath + ".json") << plan.dump();
  std::ofstream(kPath + ".ptx") << ptx_of(arguments.size());
  Kernel kernel = load_foreign_kernel(kPath + ".ptx", kPath + ".json");
  std::filesystem::remove(kPath + ".json"), std::filesystem::remove(kPath + ".ptx");
  return kernel;
}

std::string complaint(const json& arguments, const json& more = json::object()) {
  try {
    kernel_of(arguments, more);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

Program program(const Kernel& kernel, const Case& c) {
  return kernel.plan(resolve_unchecked(c, find_operator("linear_attn")), {});
}

Case small_case() {
  Case c;
  c.B = 2, c.T = 40, c.H = 3, c.K = 16, c.V = 32;
  return c;
}

json wrapped(const json& member) {
  return {{"struct", {member, {{"i32", 1}}}}, {"size", 256}};
}
const json kQueries = wrapped({{"tensor_map", "q"}, {"box", {1, 16, 1, 16}}}),
           kKeys = wrapped({{"tensor_map", "k"}, {"box", {1, 16, 1, 16}}}),
           kValues = wrapped({{"pointer", "v"}, {"offset", 16}});

TEST(ComposedArgument, ATensorMapIsOverTheTensorOfTheCase) {
  const Program made = program(kernel_of({kQueries, kKeys, kValues}), small_case());
  const Argument& q = made.launches.at(0).arguments.at(0);
  ASSERT_EQ(q.bytes.size(), 256u);
  ASSERT_EQ(q.relocations.size(), 1u);
  EXPECT_EQ(q.relocations[0].to.buffer, "q");
  ASSERT_TRUE(q.relocations[0].tile_map);
  const TileMap& map = *q.relocations[0].tile_map;
  EXPECT_EQ(map.element, TileMap::Element::bf16);
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{16, 3, 40, 2}));
  EXPECT_EQ(map.strides, (std::vector<uint64_t>{32, 96, 3840}));
  EXPECT_EQ(map.box, (std::vector<uint32_t>{16, 1, 16, 1}));
  int32_t one = 0;
  std::memcpy(&one, q.bytes.data() + 128, sizeof one);
  EXPECT_EQ(one, 1);
  const Argument& v = made.launches.at(0).arguments.at(2);
  ASSERT_EQ(v.relocations.size(), 1u);
  EXPECT_EQ(v.relocations[0].to.buffer, "v");
  EXPECT_EQ(v.relocations[0].to.offset, 16);
}

TEST(ComposedArgument, ATensorMapFollowsThePlansLayoutAndSizesOfAWorkspace) {
  const json scratch = wrapped({{"tensor_map", "ws"},
                                {"element", "f32"},
                                {"shape", {"T", 16}},
                                {"strides", {16}},
                                {"box", {8, 16}},
                                {"swizzle", 64}});
  const Kernel kernel =
      kernel_of({kQueries, kKeys, kValues, scratch}, {{"layouts", {{"q", {"B", "H", "T", "K"}}}}});
  const Program made = program(kernel, small_case());
  const std::vector<Argument>& arguments = made.launches.at(0).arguments;
  EXPECT_EQ(arguments[0].relocations.at(0).tile_map->sizes, (std::vector<uint64_t>{16, 40, 3, 2}));
  const TileMap& map = *arguments[3].relocations.at(0).tile_map;
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{16, 40}));
  EXPECT_EQ(map.swizzle, TileMap::Swizzle::of_64_bytes);
}

TEST(ComposedArgument, WhatIsAbsentIsNullOrZerosAsThePlanSays) {
  const json state = {{"tensor_map", "initial_state"}, {"box", {1, 1, 16, 32}}};
  json zeros = state;
  zeros["absent"] = "zeros";
  const json pointer = wrapped("initial_state");
  Case c = small_case();
  const Program made = program(kernel_of({kQueries, kKeys, kValues, wrapped(zeros), pointer}), c);
  EXPECT_EQ(made.launches.at(0).arguments.at(3).relocations.at(0).to.buffer, "initial_state.zeros");
  EXPECT_TRUE(made.launches.at(0).arguments.at(4).relocations.empty());
  ASSERT_EQ(made.constants.size(), 1u);
  EXPECT_EQ(made.constants[0].name, "initial_state.zeros");

  const Kernel without = kernel_of({kQueries, kKeys, kValues, wrapped(state)});
  EXPECT_THROW(program(without, c), BadInput);
  c.initial_state = true;
  EXPECT_EQ(program(without, c).launches.at(0).arguments.at(3).relocations.at(0).to.buffer, "initial_state");
}

/// A tile of no tokens is no tensor map: such a launch has no blocks.
TEST(ComposedArgument, OfALaunchWithoutBlocksIsNotMade) {
  const json late = wrapped({{"tensor_map", "ws"},
                             {"element", "u8"},
                             {"shape", {"65 - T"}},
                             {"strides", json::array()},
                             {"box", {1}}});
  Case c = small_case();
  c.T = 65;
  EXPECT_TRUE(program(kernel_of({kQueries, kKeys, kValues, late}), c).launches.empty());
}

TEST(ComposedArgument, MistakesAreNamedBeforeAnythingRuns) {
  const std::pair<json, const char*> rows[] = {
      {wrapped({{"tensor_map", "p"}, {"box", {1}}}),
       "linear_attn has no tensor \"p\" and no workspace has that name"},
      {wrapped({{"tensor_map", "q"}, {"box", {1}}}),
       "/launches/0/arguments/3/struct/0: a box of 1 axes over a tensor"},
      {{{"tensor_map", "q"}, {"box", {1, 16, 1, 16}}},
       "128 bytes for the parameter f_param_3 of f, which has 256"},
      {wrapped({{"i32", "tokens"}}), "/launches/0/arguments/3/struct/0/i32"},
      {wrapped({{"pointer", "q"}, {"absent", "ones"}}), "\"ones\"; write \"null\" or \"zeros\""},
  };
  for (const auto& [argument, message] : rows) {
    const std::string said = complaint({kQueries, kKeys, kValues, argument});
    EXPECT_NE(said.find(message), std::string::npos) << argument.dump() << "\n  " << said;
  }
}

}  // namespace composed_argument_test
}  // namespace assay
