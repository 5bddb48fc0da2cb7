#include "src/base/ptx/inlined_frames.h"

#include <gtest/gtest.h>

#include "src/base/ptx/program.h"

namespace assay::ptx {
namespace {

// helper.cuh:3 in keys.cuh:9 in chunk.cu:20; then a toolkit header in chunk.cu:21; then chunk.cu itself.
constexpr const char* kText = R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "kernels/gla/chunk.cu"
.file 2 "kernels/gla/keys.cuh"
.file 3 "kernels/device/helper.cuh"
.file 4 "/opt/cuda/include/crt/math.hpp"
.visible .entry k()
{
.reg .f32 %f<4>;
.loc 2 9 3, function_name $keys, inlined_at 1 20 5
.loc 3 3 1, function_name $helper, inlined_at 2 9 3
ex2.approx.f32 %f1, %f2;
.loc 4 70 1, function_name $exp, inlined_at 1 21 5
neg.f32 %f2, %f1;
.loc 1 22 1
abs.f32 %f3, %f2;
ret;
}
)";

std::vector<std::string> frames_at(const std::string& opcode) {
  const Module module = parse(kText, "k.ptx");
  for (const Instruction& in : module.functions[0].body)
    if (in.opcode == opcode) return inlined_frames(module, in.line);
  ADD_FAILURE() << opcode;
  return {};
}

TEST(InlinedFrames, GoFromTheLineItselfOutToTheEntry) {
  EXPECT_EQ(frames_at("ex2.approx.f32"),
            (std::vector<std::string>{"kernels/device/helper.cuh:3", "kernels/gla/keys.cuh:9",
                                      "kernels/gla/chunk.cu:20"}));
}

TEST(InlinedFrames, LeaveToolkitHeadersOutAndAreEmptyWhereNothingIsInlined) {
  EXPECT_EQ(frames_at("neg.f32"), std::vector<std::string>{"kernels/gla/chunk.cu:21"});
  EXPECT_TRUE(frames_at("abs.f32").empty());
  EXPECT_TRUE(inlined_frames(parse(kText, "k.ptx"), -1).empty());
}

}  // namespace
}  // namespace assay::ptx
