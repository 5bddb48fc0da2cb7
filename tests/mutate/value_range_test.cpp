// Intervals of integer registers, read off the text.
#include "src/campaign/mutate/value_range.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

TEST(ValueRange, FollowsDefinitions) {
  const struct {
    const char* body;
    ValueRange r1;
  } rows[] = {
      {"mov.u32 %r1, 7;", {7, 7}},
      {"mov.u32 %r1, %tid.x;", {0, 1023}},
      {"mov.u32 %r2, %tid.x; shr.u32 %r1, %r2, 5;", {0, 31}},
      {"mov.u32 %r2, %tid.x; and.b32 %r1, %r2, 31;", {0, 31}},
      {"mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.s32 %r1, %r3, -4;", {-4, 4088}},
      {"mov.u32 %r2, %tid.x; mul.lo.s32 %r3, %r2, -3; sub.s32 %r1, 1, %r3;", {1, 3070}},
      {"mov.u32 %r2, %tid.x; shr.s32 %r1, %r2, 31;", {0, 0}},
      {"mov.u32 %r2, %tid.x; min.s32 %r3, %r2, 4; max.s32 %r1, %r3, 1;", {1, 4}},
      {"mov.u32 %r2, %tid.x; selp.b32 %r1, %r2, -1, %p1;", {-1, 1023}},
      {"mov.u32 %r2, %tid.x; setp.lt.s32 %p1, %r2, 1024; selp.b32 %r1, 4, -1, %p1;", {4, 4}},
      {"mov.u32 %r2, %tid.x; setp.gt.s32 %p1, %r2, 1023; selp.b32 %r1, 4, -1, %p1;", {-1, -1}},
      {"mov.u32 %r2, %tid.x; setp.lt.s32 %p1, %r2, 1023; selp.b32 %r1, 4, -1, %p1;", {-1, 4}},
      {"mov.u32 %r2, %tid.x; or.b32 %r1, %r2, 48;", {48, 1023}},
      {"mov.u32 %r2, %tid.x; xor.b32 %r1, %r2, 48;", {0, 1023}},
      {"mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 1; and.b32 %r1, %r3, -2048;", {0, 0}},
      {"mov.u32 %r2, %tid.x; add.s32 %r3, %r2, 1024; and.b32 %r1, %r3, 1023;", {0, 1023}},
      {"mov.u32 %r2, %tid.x; add.s32 %r3, %r2, 1024; and.b32 %r1, %r3, 2047;", {1024, 2047}},
      {"mov.u32 %r2, %tid.x; add.s32 %r3, %r2, 1023; and.b32 %r1, %r3, 2047;", {0, 2046}},
      {"mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 3; shl.b32 %r4, %r2, 2; or.b32 %r1, %r3, %r4;", {0, 4095}},
      {"mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 3; shl.b32 %r4, %r2, 3; or.b32 %r1, %r3, %r4;", {0, 8187}},
      {"mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 15; shl.b32 %r4, %r2, 3; or.b32 %r1, %r3, %r4;", {0, 8191}},
      {"mov.u32 %r2, %tid.x; shr.u32 %r1, %r2, 5; ld.global.u32 %r2, [%rd1];", {0, 31}},
      {"mov.u32 %r2, %tid.x; $L_a: shr.u32 %r1, %r2, 5; ld.global.u32 %r2, [%rd1]; @%p1 bra $L_a;",
       {0, 134217727}},
      {"mov.u32 %r1, %tid.x; $L_a: add.s32 %r1, %r1, 128; setp.lt.s32 %p1, %r1, 4096; @%p1 bra $L_a;",
       {0, 4223}},
      {"mov.u32 %r2, %tid.x; div.s32 %r3, %r2, 10; rem.s32 %r1, %r3, 8;", {0, 7}},
      {"mov.u32 %r1, 0; @%p1 mov.u32 %r1, 5;", {0, 5}},
      {"ld.param.u32 %r2, [n]; add.s32 %r3, %r2, -1; shr.s32 %r1, %r3, 31;", {-1, 0}},
      {"ld.param.u32 %r2, [n]; shr.s32 %r1, %r2, 31;", {0, 0}},
      {"ld.param.u32 %r2, [n]; add.s32 %r3, %r2, 63; shr.s32 %r1, %r3, 31;", {0, 0}},
      {"ld.param.u32 %r2, [n]; shl.b32 %r3, %r2, 1; shr.s32 %r1, %r3, 31;", {-1, 0}},
      {"ld.param.u64 %rd1, [n]; add.s64 %rd2, %rd1, 63; shr.s64 %rd3, %rd2, 63; cvt.u32.u64 %r1, %rd3;",
       {0, 0}},
      {"mov.u32 %r2, %tid.x; mul.lo.s32 %r3, %r2, 4000000; shr.s32 %r1, %r3, 31;", {-1, 0}},
      {"ld.global.u32 %r2, [%rd1]; shr.u32 %r1, %r2, 28;", {0, 15}},
      {"ld.global.u32 %r2, [%rd1]; shr.s32 %r1, 31, %r2;", {0, 31}},
      {"ld.global.u32 %r1, [%rd1];", {INT32_MIN, INT32_MAX}},
      {"mov.u32 %r1, 0; $L_loop: add.s32 %r1, %r1, 1; @%p1 bra $L_loop;", {INT32_MIN, INT32_MAX}},
  };
  for (const auto& row : rows) {
    const ptx::MutableText text = small_program(row.body);
    const ptx::Function& f = text.module().functions[0];
    ValueRanges ranges(f, {{1}, {}, {1}, {}, {}});  // n is a size
    int32_t r1 = -1;
    for (size_t i = 0; i < f.registers.size(); ++i)
      if (f.registers[i].name == "%r1") r1 = static_cast<int32_t>(i);
    EXPECT_EQ(ranges.of(r1).low, row.r1.low) << row.body;
    EXPECT_EQ(ranges.of(r1).high, row.r1.high) << row.body;
  }
}

TEST(ValueRange, OfParametersIsWhatAllPlansPass) {
  const ptx::MutableText text = small_program("ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];");
  const ptx::Function& f = text.module().functions[0];
  const auto range = [&](const ParameterRoles& roles, size_t at) {
    return ValueRanges(f, roles).result(f.body[at]);
  };
  ParameterRoles roles;
  EXPECT_EQ(range(roles, 0), ValueRange{});
  roles.places = {0};
  EXPECT_EQ(range(roles, 0), (ValueRange{256, INT64_MAX}));
  roles.places = {}, roles.nulls = {0};
  EXPECT_EQ(range(roles, 0), (ValueRange{0, 0}));
  roles.sizes = {1}, roles.most[1] = 64;
  EXPECT_EQ(range(roles, 1), (ValueRange{0, 64}));
  roles.least[1] = 17;
  EXPECT_EQ(range(roles, 1), (ValueRange{17, 64}));
}

TEST(ValueRange, OfAnAddressMovedIsNotNull) {
  ParameterRoles place, null;
  place.places = {0}, null.nulls = {0};
  const auto holds = [&](const std::string& body, const ParameterRoles& roles) {
    const ptx::MutableText text = small_program("ld.param.u64 %rd1, [a]; mov.u64 %rd2, %rd1; " + body);
    const ptx::Function& f = text.module().functions[0];
    return ValueRanges(f, roles).result(f.body[f.body.size() - 2]);
  };
  const ValueRange never{0, 0}, always{1, 1}, either{0, 1};
  const std::string moved = "add.s64 %rd4, %rd2, %rd3; ", ends = "setp.eq.s64 %p1, %rd4, 0;";
  EXPECT_EQ(holds(moved + ends, place), never);
  EXPECT_EQ(holds(moved + "setp.ne.s64 %p1, %rd4, 0;", place), always);
  EXPECT_EQ(holds(moved + "setp.eq.s64 %p1, %rd4, 1;", place), either);
  EXPECT_EQ(holds(moved + ends, null), either);
  EXPECT_EQ(holds(moved + ends, {}), either);
  EXPECT_EQ(holds("add.s64 %rd4, %rd2, %rd1; " + ends, place), either) << "no sum of two is one";
  EXPECT_EQ(holds("sub.s64 %rd4, %rd2, %rd3; " + ends, place), either);
  EXPECT_EQ(holds(moved + "@%p2 mov.u64 %rd4, %rd3; " + ends, place), either) << "or something else";
}

TEST(ValueRange, OfAnAddressChosenIsThatOfTheSideThatIsChosen) {
  const auto is_null = [](const std::string& body, const ParameterRoles& roles) {
    const ptx::MutableText text =
        small_program("ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; add.s64 %rd4, %rd2, %rd3; " +
                      body + " setp.eq.s64 %p2, %rd5, 0; or.pred %p4, %p2, %p3; not.pred %p5, %p4;");
    const ptx::Function& f = text.module().functions[0];
    ValueRanges ranges(f, roles);
    const size_t last = f.body.size() - 2;
    return std::pair{ranges.result(f.body[last - 2]), ranges.result(f.body[last - 1])};
  };
  ParameterRoles place, null;
  place.places = {0}, null.nulls = {0};
  const ValueRange never{0, 0}, always{1, 1}, either{0, 1};
  const std::string kept = "setp.eq.s64 %p1, %rd1, 0; selp.b64 %rd5, 0, %rd4, %p1;",
                    swapped = "setp.eq.s64 %p1, %rd1, 0; selp.b64 %rd5, %rd4, 0, %p1;";
  EXPECT_EQ(is_null(kept, place), std::pair(never, either));
  EXPECT_EQ(is_null(kept, null), std::pair(always, always)) << "with whatever it is or'ed, it holds";
  EXPECT_EQ(is_null(kept, {}), std::pair(either, either));
  EXPECT_EQ(is_null(swapped, place), std::pair(always, always));
  EXPECT_EQ(is_null(swapped, null), std::pair(either, either)) << "null moved by an offset may be anything";
  EXPECT_EQ(is_null("selp.b64 %rd5, %rd4, 0, %p1;", place), std::pair(either, either));
  EXPECT_EQ(is_null("selp.b64 %rd5, %rd4, %rd2, %p1;", place), std::pair(never, either)) << "places both";
}

TEST(ValueRange, OfThreadsEndsWhereTheBlockDoes) {
  const auto text = std::make_shared<const std::string>(
      ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f()\n.maxntid 128, 1, 1\n{\n"
      ".reg .b32 %r<3>;\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nret;\n}\n");
  const ptx::MutableText program(text, "test.ptx");
  const ptx::Function& f = program.module().functions[0];
  ValueRanges ranges(f, {});
  for (const int i : {0, 1}) EXPECT_EQ(ranges.result(f.body[static_cast<size_t>(i)]), (ValueRange{0, 127}));
}

TEST(ValueRange, AParameterThatIsNoSizeMayBeNegative) {
  const ptx::MutableText text = small_program("ld.param.u32 %r1, [n];");
  const ptx::Function& f = text.module().functions[0];
  ValueRanges ranges(f, {});
  EXPECT_EQ(ranges.of(f.body[0].operands[0].reg).low, INT32_MIN);
}

/// Of %r1, where `a` may be a table and `n` a size.
ValueRange of_r1(const std::string& body, const ParameterRoles& roles) {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  ValueRanges ranges(f, roles);
  for (size_t i = 0; i < f.registers.size(); ++i)
    if (f.registers[i].name == "%r1") return ranges.of(static_cast<int32_t>(i));
  return {};
}

TEST(ValueRange, OfAWidthEndsWhereTheKernelsLimitDoes) {
  const char* body = "ld.param.u32 %r2, [n]; add.s32 %r1, %r2, 63;";
  EXPECT_EQ(of_r1(body, {{1}, {}, {1}, {}, {{1, 256}}}).high, 319);
  EXPECT_EQ(of_r1(body, {{1}, {}, {1}, {}, {}}).high, (1 << 30) + 63) << "where sizes end";
}

TEST(ValueRange, OfATableWithoutNegativeNumbersHasNone) {
  const std::string address = "ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; ",
                    sign = "shr.s64 %rd4, %rd3, 63; cvt.u32.u64 %r1, %rd4;";
  const std::string from_table = address + "ld.global.u64 %rd3, [%rd2+8]; " + sign,
                    by_entry = address +
                               "ld.global.u64 %rd5, [%rd2]; shl.b64 %rd6, %rd5, 3; add.s64 %rd7, %rd2, %rd6; "
                               "ld.global.u64 %rd3, [%rd7]; " +
                               sign,
                    by_pointer = address +
                                 "ld.global.u64 %rd5, [%rd8]; add.s64 %rd7, %rd2, %rd5; "
                                 "ld.global.u64 %rd3, [%rd7]; " +
                                 sign;
  const ParameterRoles natural{{1}, {0}, {1}, {0}, {}}, any{{1}, {0}, {1}, {}, {}};
  EXPECT_EQ(of_r1(from_table, natural), (ValueRange{0, 0}));
  EXPECT_EQ(of_r1(by_entry, natural), (ValueRange{0, 0}));
  EXPECT_NE(of_r1(from_table, any), (ValueRange{0, 0})) << "a table may hold -1";
  EXPECT_NE(of_r1(by_pointer, natural), (ValueRange{0, 0})) << "who knows what lies there";
}

TEST(ValueRange, OfARestOfBlocksEndsWhereTheBlockDoes) {
  const std::string bias = "mov.u32 %r2, %tid.x; shr.s32 %r3, %r2, 31; shr.u32 %r4, %r3, 27; ";
  EXPECT_EQ(of_r1(bias + "add.s32 %r5, %r2, %r4; and.b32 %r6, %r5, -32; sub.s32 %r1, %r2, %r6;", {}),
            (ValueRange{0, 31}));
  EXPECT_EQ(of_r1("mov.u32 %r2, %tid.x; and.b32 %r6, %r2, -128; sub.s32 %r1, %r2, %r6;", {}),
            (ValueRange{0, 127}));
  for (const std::string& other :
       {bias + "add.s32 %r5, %r2, 1; and.b32 %r6, %r5, -32; sub.s32 %r1, %r2, %r6;",
        bias + "and.b32 %r6, %r2, -31; sub.s32 %r1, %r2, %r6;",
        bias + "mov.u32 %r7, %ctaid.x; and.b32 %r6, %r7, -32; sub.s32 %r1, %r2, %r6;",
        std::string("mov.u32 %r2, %tid.x; and.b32 %r6, %r2, -32; mov.u32 %r2, 900; sub.s32 %r1, %r2, %r6;")})
    EXPECT_GT(of_r1(other, {}).high, 127) << other;
}

}  // namespace
}  // namespace assay
