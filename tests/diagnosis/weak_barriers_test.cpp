// Barriers of a warp that would have to be the block's.
#include "src/verification/diagnosis/weak_barriers.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

/// o[t] = x[from(t)] by way of shared memory, 64 threads; a second barrier, needed by nobody, after it.
Program reversed(const std::string& from) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 po) {
  .reg .f32 %x;
  .reg .b32 %t, %own, %other, %base;
  .reg .b64 %ax, %ao, %step;
  .shared .align 4 .b8 row[256];
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ao, %ao, %step;
  mov.u32 %base, row;
  shl.b32 %own, %t, 2;
  )" + from + R"(
  shl.b32 %other, %other, 2;
  add.s32 %own, %base, %own;
  add.s32 %other, %base, %other;
  ld.global.f32 %x, [%ax];
  st.shared.f32 [%own], %x;
  bar.warp.sync 0xffffffff;
  ld.shared.f32 %x, [%other];
  bar.warp.sync 0xffffffff;
  st.global.f32 [%ao], %x;
  ret;
}
)";
  Program program;
  program.name = "reversed";
  program.modules.push_back({"m", "reversed.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 64}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {64, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}}});
  return program;
}

std::vector<ChainLink> too_weak(const std::string& from, double seconds = 60) {
  const TensorMap inputs{{"x", Tensor("x", Dtype::fp32, {{"T", 64}})}};
  return barriers_too_weak(reversed(from), inputs, {}, SourceText("reversed"), seconds);
}

TEST(WeakBarriers, TheOneThatWouldHaveToHoldTheBlock) {
  const std::vector<ChainLink> barriers = too_weak("sub.s32 %other, 63, %t;");
  ASSERT_EQ(barriers.size(), 1);
  EXPECT_EQ(barriers[0].where.ptx_line, 23);
}

TEST(WeakBarriers, WithoutTimeNothingIsTried) {
  EXPECT_TRUE(too_weak("sub.s32 %other, 63, %t;", 0).empty());
}

}  // namespace
}  // namespace assay
