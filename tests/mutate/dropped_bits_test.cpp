// Literals of which only dropped bits change: each with a twin whose bits are kept.
#include "src/campaign/mutate/dropped_bits.h"

#include <gtest/gtest.h>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// The first literal of the body's second line (8) one larger, or another change.
bool dropped(const std::string& body, const char* change = "8+shift-constant") {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  const ptx::Mutation mutation = text.named(change);
  const ptx::Module changed = ptx::parse(text.with(mutation), "test.ptx");
  ValueRanges ranges(f, {});
  return changes_dropped_bits_only(ranges, mutation.instruction,
                                   changed.functions[0].body[static_cast<size_t>(mutation.instruction)]);
}

TEST(DroppedBits, AreThoseThatNothingKeeps) {
  const std::string load = "ld.global.u32 %r2, [%rd1]; shl.b32 %r3, %r2, 8;\nadd.s32 %r1, %r3, 16;\n";
  const struct {
    const char* dropped;
    const char* kept;
  } rows[] = {
      {"and.b32 %r4, %r1, -256; st.global.u32 [%rd1], %r4;",
       "and.b32 %r4, %r1, -255; st.global.u32 [%rd1], %r4;"},
      {"shr.u32 %r4, %r1, 5; st.global.u32 [%rd1], %r4;", "shl.b32 %r4, %r1, 5; st.global.u32 [%rd1], %r4;"},
      {"shl.b32 %r4, %r1, 28; and.b32 %r5, %r4, 15; st.global.u32 [%rd1], %r5;",
       "shl.b32 %r4, %r1, 27; and.b32 %r5, %r4, 134217728; st.global.u32 [%rd1], %r5;"},
      {"and.b32 %r4, %r1, -256; add.s32 %r5, %r4, %r2; st.global.u32 [%rd1], %r5;",
       "and.b32 %r4, %r1, -256; add.s32 %r5, %r4, %r1; st.global.u32 [%rd1], %r5;"},
      {"shr.u32 %r4, %r1, 5; setp.lt.s32 %p1, %r4, 3; @%p1 bra $L_end; st.global.u32 [%rd1], %r4;",
       "setp.lt.s32 %p1, %r1, 3; @%p1 bra $L_end; st.global.u32 [%rd1], %r2;"},
  };
  for (const auto& row : rows) {
    EXPECT_TRUE(dropped(load + row.dropped)) << row.dropped;
    EXPECT_FALSE(dropped(load + row.kept)) << row.kept;
  }
  const std::string carried = "ld.global.u32 %r2, [%rd1]; shl.b32 %r3, %r2, 4;\nadd.s32 %r1, %r3, 31;\n";
  EXPECT_FALSE(dropped(carried + "and.b32 %r4, %r1, -256; st.global.u32 [%rd1], %r4;"))
      << "32 is a bit further";
  const std::string inserted = "\nbfi.b32 %r1, %r2, %r3, 4, 28; st.global.u32 [%rd1], %r1;";
  EXPECT_TRUE(dropped("mov.u32 %r2, %tid.x; mov.u32 %r3, 7;" + inserted, "8+shift-constant.4"))
      << "bit 31 is 0 on either side";
  EXPECT_FALSE(dropped("mov.u32 %r2, %tid.x; ld.global.u32 %r3, [%rd1];" + inserted, "8+shift-constant.4"));
  EXPECT_FALSE(dropped("ld.global.u32 %r2, [%rd1]; mov.u32 %r3, 7;" + inserted, "8+shift-constant.4"));
}

}  // namespace
}  // namespace assay
