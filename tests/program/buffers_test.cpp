#include "src/base/program/buffers.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

Program program_of() {
  Program program;
  program.name = "test";
  program.outputs = {{"y", Dtype::fp32, {{"T", 4}}}};
  program.workspaces = {{"w", 64}};
  return program;
}

TensorMap inputs() {
  return {{"x", Tensor("x", Dtype::fp32, {{"T", 4}})}};
}

TEST(Buffers, AreInputsOutputsAndWorkspacesInThisOrder) {
  Program program = program_of();
  program.outputs.push_back({"x", Dtype::fp32, {{"T", 4}}});
  program.aliases = {{"y", "w", 48}};
  const TensorMap given = inputs();
  const std::vector<Buffer> buffers = buffers_of(program, given);
  ASSERT_EQ(buffers.size(), 3u);
  EXPECT_EQ(buffers[0].name, "x");
  EXPECT_EQ(buffers[0].use, Buffer::Use::in_out);
  EXPECT_EQ(buffers[0].contents, &given.at("x"));
  EXPECT_EQ(buffers[1].use, Buffer::Use::out);
  EXPECT_EQ(buffers[1].storage, 2);
  EXPECT_EQ(buffers[1].offset, 48);
  EXPECT_EQ(buffers[2].bytes, 64);
  EXPECT_FALSE(is_shared(buffers, buffers[0]));
  EXPECT_TRUE(is_shared(buffers, buffers[1]));
  EXPECT_TRUE(is_shared(buffers, buffers[2]));
}

TEST(Buffers, WhatCannotBeIsNamed) {
  const auto refused = [](auto change, const std::string& why) {
    Program program = program_of();
    change(program);
    try {
      buffers_of(program, inputs());
      ADD_FAILURE() << "accepted: " << why;
    } catch (const BadInput& error) {
      EXPECT_EQ(error.what(), "test: " + why);
    }
  };
  refused([](Program& p) { p.workspaces.push_back({"x", 4}); }, "two buffers are named x");
  refused([](Program& p) { p.workspaces[0].bytes = -1; }, "workspace w has a negative size");
  refused(
      [](Program& p) {
        p.outputs.push_back({"x", Dtype::fp32, {{"T", 3}}});
      },
      "x is read as fp32 [T=4] and written as fp32 [T=3]");
  refused([](Program& p) { p.aliases = {{"z", "w", 0}}; }, "the alias z is no buffer of the program");
  refused([](Program& p) { p.aliases = {{"y", "z", 0}}; }, "y lies in z, which is no buffer of the program");
  refused(
      [](Program& p) {
        p.aliases = {{"y", "w", 49}};
      },
      "y, 16 bytes from byte 49 on, is not within the 64 bytes of w");
  refused(
      [](Program& p) {
        p.aliases = {{"x", "y", 0}, {"y", "w", 0}};
      },
      "y cannot lie in w: a storage lies in no other, and a buffer in one");
  refused(
      [](Program& p) {
        p.layouts["x"] = {{4}, {2}, 0, 7}, p.aliases = {{"x", "w", 0}};
      },
      "x cannot lie in w: a view has memory of its own");
}

}  // namespace
}  // namespace assay
