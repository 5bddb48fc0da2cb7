// Registers that loops count up: each with a twin that may wrap.
#include "src/campaign/mutate/counters.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// Of %r1.
std::optional<ValueRange> counted(const std::string& body) {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  ValueRanges ranges(f, {{1}, {}, {1}, {}, {}});
  for (size_t i = 0; i < f.registers.size(); ++i)
    if (f.registers[i].name == "%r1") return counted_range(ranges, static_cast<int32_t>(i));
  return std::nullopt;
}

TEST(Counters, StayBelowWhatEveryWayComparesWith) {
  const struct {
    const char* body;
    int64_t most;
  } rows[] = {
      {"$L_a: setp.ge.s32 %p1, %r1, 4096; @%p1 bra $L_end; add.s32 %r1, %r1, 128; bra $L_a;", 4223},
      {"$L_a: setp.lt.s32 %p1, 4095, %r1; @%p1 bra $L_end; add.s32 %r1, %r1, 128; bra $L_a;", 4223},
      {"$L_a: add.s32 %r1, %r1, 128; setp.lt.s32 %p1, %r1, 4096; @%p1 bra $L_a;", 4223},
      {"$L_a: add.s32 %r1, %r1, 128; setp.le.s32 %p1, %r1, 4096; @%p1 bra $L_a;", 4224},
      {"$L_a: setp.lt.s32 %p1, %r1, 4096; add.s32 %r2, %r1, 128; mov.u32 %r1, %r2; @%p1 bra $L_a;", 4351},
      {"$L_a: add.s32 %r2, %r1, 128; setp.lt.s32 %p1, %r1, 4096; mov.u32 %r1, %r2; @%p1 bra $L_a;", 4351},
      {"$L_a: add.s32 %r2, %r1, 128; setp.lt.s32 %p1, %r2, 4096; mov.u32 %r1, %r2; @%p1 bra $L_a;", 4223},
      {"$L_a: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 9; @%p1 bra $L_a; $L_b: add.s32 %r1, %r1, 7; "
       "setp.gt.s32 %p1, %r1, 2; @!%p1 bra $L_b;",
       -1},  // of %p1 there are two
      {"$L_a: add.s32 %r1, %r1, 128; setp.gt.s32 %p1, %r1, 4096; @%p1 bra $L_a;", -1},
      {"$L_a: add.s32 %r1, %r1, 128; setp.lt.s32 %p1, %r3, 4096; @%p1 bra $L_a;", -1},
      {"$L_a: add.s32 %r1, %r1, 128; setp.lt.s32 %p1, %r1, %r3; @%p1 bra $L_a;", -1},
      {"$L_a: add.s32 %r1, %r1, 128; setp.lt.u32 %p1, %r1, 4096; @%p1 bra $L_a;", -1},
      {"$L_a: add.s32 %r1, %r1, -1; setp.lt.s32 %p1, %r1, 4096; @%p1 bra $L_a;", -1},
      {"$L_a: add.s32 %r1, %r1, 128; setp.lt.s32 %p1, %r1, 4096; @%p2 bra $L_a; @%p1 bra $L_a;", -1},
      {"setp.lt.s32 %p1, %r1, 4096; $L_a: add.s32 %r1, %r1, 128; @%p1 bra $L_a;", -1},
      {"$L_a: add.s32 %r1, %r1, 128; setp.lt.s32 %p1, %r1, 4096; add.s32 %r1, %r1, 9; @%p1 bra $L_a;", -1},
      {"mov.u32 %r1, 9;", -1},
  };
  for (const auto& row : rows) {
    const auto range = counted(std::string("mov.u32 %r1, %tid.x; ") + row.body);
    EXPECT_EQ(range ? range->high : -1, row.most) << row.body;
    EXPECT_EQ(range ? range->low : 0, 0) << row.body;
  }
  EXPECT_FALSE(
      counted("ld.global.u32 %r1, [%rd1]; $L_a: add.s32 %r1, %r1, 128; setp.lt.s32 %p1, %r1, 4096; "
              "@%p1 bra $L_a;"))
      << "it may start at the largest";
}

}  // namespace
}  // namespace assay
