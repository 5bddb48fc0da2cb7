// Bits that are always 0, read off the text.
#include "src/campaign/mutate/zero_bits.h"

#include <gtest/gtest.h>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

TEST(ZeroBits, FollowDefinitions) {
  const struct {
    const char* body;
    uint32_t can_be_one;  ///< of %r1
  } rows[] = {
      {"mov.u32 %r1, 5;", 5},
      {"mov.u32 %r1, %tid.x;", 1023},
      {"mov.u32 %r2, %tid.x; shl.b32 %r1, %r2, 4;", 1023 << 4},
      {"ld.global.u32 %r2, [%rd1]; shl.b32 %r3, %r2, 30; shr.u32 %r1, %r3, 28;", 12},
      {"ld.global.u32 %r2, [%rd1]; shr.s32 %r1, %r2, 28;", 0xffffffff},
      {"ld.global.u32 %r2, [%rd1]; shl.b32 %r3, %r2, 3; add.s32 %r1, %r3, 32;", 0xfffffff8},
      {"ld.global.u32 %r2, [%rd1]; shl.b32 %r3, %r2, 3; mul.lo.s32 %r1, %r3, 12;", 0xffffffe0},
      {"ld.global.u32 %r2, [%rd1]; and.b32 %r3, %r2, 7; or.b32 %r1, %r3, 64;", 71},
      {"ld.global.u32 %r2, [%rd1]; mov.u32 %r3, 3; bfi.b32 %r1, %r2, %r3, 8, 4;", 0xf03},
      {"ld.global.u32 %r2, [%rd1]; selp.b32 %r1, 4, 8, %p1;", 12},
      {"ld.global.u32 %r2, [%rd1]; mov.u32 %r1, 0; $L_a: add.s32 %r1, %r1, 1; @%p1 bra $L_a;", 0xffffffff},
      {"mov.u32 %r1, 4; @%p1 ld.global.u32 %r1, [%rd1];", 0xffffffff},
  };
  for (const auto& row : rows) {
    const ptx::MutableText text = small_program(row.body);
    const ptx::Function& f = text.module().functions[0];
    ValueRanges ranges(f, {});
    ZeroBits zeros(ranges);
    for (size_t i = 0; i < f.registers.size(); ++i)
      if (f.registers[i].name == "%r1") {
        EXPECT_EQ(~static_cast<uint32_t>(zeros.of(static_cast<int32_t>(i))), row.can_be_one) << row.body;
      }
  }
}

}  // namespace
}  // namespace assay
