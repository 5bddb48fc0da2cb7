#include "src/base/vm/departure.h"

#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace departure_test {

struct Compared {
  Outcome first;
  TwoRuns two;
};
Compared compare(const SmallKernel& kernel, uint64_t order, uint8_t poison = 0xff) {
  TensorMap inputs;
  const Program program = plan_of(kernel, inputs);
  const MachineOptions plain{.threads = 1};
  MachineOptions other = plain;
  other.order = order;
  Compared c{run(program, inputs, plain), {}};
  c.two = compare_runs_of(program, inputs, c.first, {plain}, {other, poison});
  return c;
}

TEST(Departure, ThereIsNoneWhereEveryOrderGivesTheSame) {
  for (const uint64_t order : {1, 2, 3}) {
    const Compared c = compare({.body = "add.u32 %d, %a, %t;", .a = {5}, .threads = 96, .blocks = 7}, order);
    EXPECT_FALSE(c.two.departure);
    EXPECT_EQ(words_of(c.two.second), words_of(c.first));
  }
}

/// A shuffled order takes turns of some hundred instructions, which end at branches.
TEST(Departure, TurnsThatEndInALoopAreNone) {
  const Compared c =
      compare({.body = "mov.u32 %d, 0;\nAGAIN: add.u32 %d, %d, %a; setp.lt.u32 %p0, %d, 5000;\n"
                       "@%p0 bra AGAIN;",
               .a = {5},
               .threads = 64},
              2);
  EXPECT_FALSE(c.two.departure);
}

TEST(Departure, ARaceOfWarpsPartsWhereTheOtherValueIsRead) {
  // Warp 0 writes what warp 1 reads, without a barrier.
  const SmallKernel racing{
      .declarations = ".shared .align 4 .b32 box;",
      .body =
          "mov.u32 %d, 0; mov.u32 %r0, box;\n"
          "setp.lt.u32 %p0, %t, 32; @%p0 st.shared.u32 [%r0], %a; @!%p0 ld.shared.u32 %d, [%r0];",
      .a = {9},
      .threads = 64};
  const Compared c = compare(racing, 1);
  ASSERT_TRUE(c.two.departure);
  EXPECT_EQ(c.two.departure->instruction, "ld.shared.u32");
  EXPECT_EQ(c.two.departure->thread[0], 32u);
  EXPECT_EQ(c.two.departure->first, "0x9");
  EXPECT_FALSE(c.two.by_order_of_sums);
}

TEST(Departure, PoisonPartsAtTheFirstReadOfIt) {
  const SmallKernel reading{.declarations = ".shared .align 4 .b32 box;",
                            .body = "mov.u32 %r0, box; ld.shared.u32 %r1, [%r0]; and.b32 %d, %r1, 1;"};
  const Compared c = compare(reading, 0, 0x3a);
  ASSERT_TRUE(c.two.departure);
  EXPECT_EQ(c.two.departure->instruction, "ld.shared.u32");
  EXPECT_EQ(c.two.departure->second, "0x3a3a3a3a");
}

/// Blocks add floats of very different sizes to the first word of an input.
const SmallKernel kSums{
    .body =
        "ld.param.u64 %rd0, [pa]; cvt.rn.f32.u32 %f0, %t; mul.rn.f32 %f0, %f0, 0f4CBEBC20;\n"
        "add.rn.f32 %f0, %f0, 0f3F800001;\n"
        "red.global.add.f32 [%rd0], %f0;",
    .threads = 32,
    .blocks = 8};

TEST(Departure, ABlockOfAClusterIsNamedAsTheGridCountsIt) {
  const Compared c = compare({.declarations = ".shared .align 4 .b8 s[256];",
                              .body = "mov.u32 %d, 0; setp.eq.u32 %p0, %t, 107; mov.u32 %r0, s;\n"
                                      "@%p0 ld.shared.u32 %d, [%r0];",
                              .threads = 34,
                              .blocks = 4,
                              .cluster = {2, 1, 1}},
                             0, 0x3b);
  ASSERT_TRUE(c.two.departure);
  EXPECT_EQ(c.two.departure->block, (std::array<uint32_t, 3>{3, 0, 0}));
  EXPECT_EQ(c.two.departure->thread, (std::array<uint32_t, 3>{5, 0, 0}));
}

TEST(Departure, TheOrderOfSumsIsAClassOfItsOwn) {
  const Compared c = compare(kSums, 1);
  EXPECT_NE(c.two.second.changed_inputs.at("a").data, c.first.changed_inputs.at("a").data);
  EXPECT_TRUE(c.two.by_order_of_sums);
}

TEST(Departure, SumsOfALoopAroundACompareAndSwapAreOfThatClass) {
  const auto loop = [](const char* combined) {
    return SmallKernel{
        .body = std::string("ld.param.u64 %rd0, [pa]; cvt.rn.f32.u32 %f0, %t; "
                            "mul.rn.f32 %f0, %f0, 0f4CBEBC20; add.rn.f32 %f0, %f0, 0f3F800001;\n"
                            "ld.global.b32 %r1, [%rd0];\nAGAIN: mov.b32 %f1, %r1;\n") +
                combined +
                "atom.global.cas.b32 %r3, [%rd0], %r1, %r2; setp.ne.u32 %p1, %r3, %r1;\n"
                "mov.u32 %r1, %r3; @%p1 bra AGAIN;",
        .threads = 1,
        .blocks = 64};
  };
  const Compared sums = compare(loop("add.rn.f32 %f1, %f1, %f0; mov.b32 %r2, %f1;\n"), 1);
  EXPECT_TRUE(sums.two.departure);
  EXPECT_TRUE(sums.two.by_order_of_sums);
  // The last one's value stays: no sum.
  const Compared last = compare(loop("mov.b32 %r2, %f0;\n"), 1);
  EXPECT_TRUE(last.two.departure);
  EXPECT_FALSE(last.two.by_order_of_sums);
}

TEST(Departure, WhatIntegersAddedInAnyOrderDecideIsNot) {
  // Each block takes a ticket: the order shows in what is stored.
  const SmallKernel tickets{.declarations = ".global .align 4 .u32 next = 0;",
                            .body = "atom.global.add.u32 %d, [next], 1;",
                            .threads = 1,
                            .blocks = 4};
  const Compared c = compare(tickets, 1);
  ASSERT_TRUE(c.two.departure);
  EXPECT_EQ(c.two.departure->instruction, "atom.global.add.u32");
  EXPECT_FALSE(c.two.by_order_of_sums);
}

}  // namespace departure_test
}  // namespace assay::vm
