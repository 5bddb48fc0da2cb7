// Results that are overwritten before they are read: each with a twin that is read.
#include "src/campaign/mutate/overwritten.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// What the body's second line (8) writes.
bool overwritten(const std::string& body) {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  ValueRanges ranges(f, {});
  for (size_t i = 0; i < f.body.size(); ++i)
    if (f.body[i].ptx_line == 8) return is_overwritten(ranges, static_cast<int32_t>(i));
  return false;
}

TEST(Overwritten, IsWhatNoWayReads) {
  const std::string flag = "ld.param.u32 %r2, [n]; setp.eq.s32 %p1, %r2, 0;", write = "\nmov.u32 %r1, 5;\n",
                    unless = " @%p1 bra $L_a; mov.u32 %r1, 7; $L_a: ";
  const struct {
    std::string overwritten, read;
  } rows[] = {
      {write + "mov.u32 %r1, 6; st.global.u32 [%rd1], %r1;", write + "st.global.u32 [%rd1], %r1;"},
      {write + "mov.u32 %r1, 6; st.global.u32 [%rd1], %r1;",
       write + "@%p2 mov.u32 %r1, 6; st.global.u32 [%rd1], %r1;"},
      {flag + write + unless + "@%p1 bra $L_end; st.global.u32 [%rd1], %r1;",
       flag + write + unless + "@%p2 bra $L_end; st.global.u32 [%rd1], %r1;"},
      {flag + write + unless + "@%p1 bra $L_end; st.global.u32 [%rd1], %r1;",
       flag + write + unless + "@!%p1 bra $L_end; st.global.u32 [%rd1], %r1;"},
      {flag + write + unless + "setp.ne.s32 %p2, %r2, 0; @!%p2 bra $L_end; st.global.u32 [%rd1], %r1;",
       flag + write + unless + "setp.ne.s32 %p2, %r2, 1; @!%p2 bra $L_end; st.global.u32 [%rd1], %r1;"},
      {flag + write + unless +
           "ld.param.u32 %r3, [n]; setp.ne.s32 %p2, %r3, 0; @!%p2 bra $L_end; "
           "st.global.u32 [%rd1], %r1;",
       flag + write + unless +
           "ld.param.u32 %r3, [n+2]; setp.ne.s32 %p2, %r3, 0; @!%p2 bra $L_end; "
           "st.global.u32 [%rd1], %r1;"},
      {"ld.global.u32 %r2, [%rd1]; setp.lt.s32 %p1, %r2, 0; $L_b:" + write + unless +
           "@%p1 bra $L_end; st.global.u32 [%rd1], %r1; @%p3 bra $L_b;",
       "$L_b: ld.global.u32 %r2, [%rd1]; setp.lt.s32 %p1, %r2, 0; @%p1 bra $L_c; st.global.u32 [%rd1], %r1; "
       "$L_c:" +
           write + "@%p1 bra $L_b; mov.u32 %r1, 7; bra $L_b;"},
      {flag + " @%p1 bra $L_b;" + write +
           "bra $L_c; $L_b: mov.u32 %r1, 7; $L_c: @!%p1 bra $L_end; "
           "st.global.u32 [%rd1], %r1;",
       flag + " @%p1 bra $L_b;" + write +
           "bra $L_c; $L_b: mov.u32 %r1, 7; $L_c: @%p1 bra $L_end; "
           "st.global.u32 [%rd1], %r1;"},
      {flag + write +
           "mov.u32 %r4, %r1; add.s32 %r5, %r4, 1; @%p1 bra $L_a; mov.u32 %r5, 7; $L_a: @%p1 bra "
           "$L_end; st.global.u32 [%rd1], %r5;",
       flag + write +
           "mov.u32 %r4, %r1; add.s32 %r5, %r4, 1; @%p1 bra $L_a; mov.u32 %r5, 7; $L_a: @%p1 bra "
           "$L_end; st.global.u32 [%rd1], %r4;"},
      {write + "setp.eq.s32 %p4, %r1, 3; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;",
       write + "setp.eq.s32 %p4, %r1, 3; mov.u32 %r1, 7; @%p4 st.global.u32 [%rd1], %r1;"},
      {write + "cvt.u64.u32 %rd2, %r1; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;",
       write +
           "cvt.u64.u32 %rd2, %r1; ld.global.u32 %r3, [%rd2]; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;"},
      {flag + write + "@!%p1 mov.u32 %r1, 7; @%p1 bra $L_end; st.global.u32 [%rd1], %r1;",
       flag + write + "@%p1 mov.u32 %r1, 7; @%p1 bra $L_end; st.global.u32 [%rd1], %r1;"},
  };
  for (const auto& row : rows) {
    EXPECT_TRUE(overwritten(row.overwritten)) << row.overwritten;
    EXPECT_FALSE(overwritten(row.read)) << row.read;
  }
}

}  // namespace
}  // namespace assay
