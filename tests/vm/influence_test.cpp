#include "src/base/vm/influence.h"

#include <gtest/gtest.h>

#include <random>

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace influence_test {

/// An op of a row alone, with sources in slots of their own.
struct OneOp {
  explicit OneOp(const Row& row) {
    signature.meaning = &row, signature.form = row.form;
    op.row = &row, op.lanes = row.lanes, op.d_cell = cell_of(row.result);
    for (size_t i = 0; i < 4 && row.sources[i] != ptx::Type::none; ++i) {
      op.s[i] = static_cast<Slot>(256 * i);
      ++op.source_count;
    }
  }
  explicit OneOp(const char* opcode) : OneOp(*find_row(opcode)) {}

  /// In lane 0 of lanes that are all alike.
  uint64_t of(int i, uint64_t bits) const {
    LaneBits all;
    all.fill(bits);
    return influence(op, signature, sources, i, all)[0];
  }
  void hold(size_t i, uint64_t value) { sources.value[i].fill(value); }
  void open(size_t i, uint64_t bits) { sources.open[i].fill(bits); }

  Op op;
  Signature signature;
  SourceBits sources;
};

// What makes it enough to invert all bits in question at once.
TEST(Influence, OfSomeBitsIsThatOfEachOfThem) {
  std::mt19937_64 random(20261123);
  int tried = 0;
  for (const Row& row : rows()) {
    if (row.kind != Kind::lanes || cell_of(row.result) == Cell::mask) continue;
    OneOp one(row);
    if (one.of(0, 1) == ~uint64_t{0}) continue;  // of all of every source, whatever they hold
    ++tried;
    for (int round = 0; round < 20; ++round) {
      for (size_t i = 0; i < 4; ++i) one.hold(i, random());
      for (size_t i = 1; i < one.op.source_count && round % 2; ++i) one.hold(i, random() % 70);
      one.open(1, round % 4 == 3 && row.flow == Flow::logic ? random() : 0);
      for (int i = 0; i < one.op.source_count; ++i) {
        const uint64_t width = cell_of(row.sources[static_cast<size_t>(i)]) == Cell::wide ? 64 : 32;
        const uint64_t bits = random() & random() & (~uint64_t{0} >> (64 - width));
        uint64_t each = 0;
        for (uint64_t bit = 0; bit < width; ++bit)
          if (bits >> bit & 1) each |= one.of(i, uint64_t{1} << bit);
        ASSERT_EQ(one.of(i, bits), each) << row.pattern << ", source " << i << ", round " << round;
      }
    }
  }
  EXPECT_GT(tried, 40);
}

TEST(Influence, FollowsShiftsAndPermutationsByWhatTheyAreTold) {
  OneOp left("shl.b32"), arithmetic("shr.s32"), permute("prmt.b32"), field("bfe.s32");
  left.hold(1, 16);
  EXPECT_EQ(left.of(0, 0xffff), 0xffff0000u);
  EXPECT_EQ(left.of(0, 0xffff0000), 0u);
  arithmetic.hold(1, 8);
  EXPECT_EQ(arithmetic.of(0, 0xff000000), 0xffff0000u) << "the sign fills";
  permute.hold(2, 0x5410);
  EXPECT_EQ(permute.of(1, 0xff), 0xff0000u);
  EXPECT_EQ(permute.of(0, 0xff0000), 0u);
  field.hold(1, 4), field.hold(2, 4);
  EXPECT_EQ(field.of(0, 0x10), 1u);
  EXPECT_EQ(field.of(0, 0x80), 0xfffffff8u);
  left.open(1, 1);
  EXPECT_EQ(left.of(0, 1), ~uint64_t{0}) << "by an open distance it may go anywhere";
  EXPECT_EQ(left.of(0, 0), 0u);
}

TEST(Influence, OfOneSideEndsWhereTheOtherDecides) {
  OneOp both("and.b32"), either("or.b32"), odd("xor.b32");
  for (OneOp* op : {&both, &either, &odd}) op->hold(1, 0x00ff);
  EXPECT_EQ(both.of(0, 0xffff), 0x00ffu);
  EXPECT_EQ(either.of(0, 0xffff), 0xff00u);
  EXPECT_EQ(odd.of(0, 0xffff), 0xffffu);
  both.open(1, 0xf000), either.open(1, 0x000f);
  EXPECT_EQ(both.of(0, 0xffff), 0xf0ffu);
  EXPECT_EQ(either.of(0, 0xffff), 0xff0fu);
}

TEST(Influence, KeepsHalvesApartWhereArithmeticDoes) {
  EXPECT_EQ(OneOp("fma.rn.bf16x2").of(2, 0x1), 0xffffu);
  EXPECT_EQ(OneOp("add.u16x2").of(0, 0x80000000), 0xffff0000u);
  EXPECT_EQ(OneOp("cvt.rn.bf16x2.f32").of(0, 1), 0xffff0000u);
  EXPECT_EQ(OneOp("cvt.rn.bf16x2.f32").of(1, 1), 0xffffu);
  EXPECT_EQ(OneOp("cvt.s32.s16").of(0, 0x8000), 0xffff8000u);
  EXPECT_EQ(OneOp("cvt.u32.u16").of(0, 0xffff0000), 0u);
  EXPECT_EQ(OneOp("add.u32").of(0, 1), ~uint64_t{0}) << "carries";
}

}  // namespace influence_test
}  // namespace assay::vm
