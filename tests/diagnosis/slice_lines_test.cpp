// Formats of values that are moved as words, and what stands behind an instance.
#include "src/verification/diagnosis/slice_lines.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

vm::SliceInstance instance(vm::Flow flow, ptx::Type type, uint64_t bits, uint32_t first, uint32_t count) {
  vm::SliceInstance i;
  i.flow = flow, i.type = type, i.bits = bits, i.first_operand = first, i.operand_count = count;
  return i;
}

vm::SliceOperand made_by(int32_t at, ptx::Type type = ptx::Type::none) {
  vm::SliceOperand o;
  o.made_by = at, o.type = type;
  return o;
}

/// A store of a word's half, a shuffle of the word, a conversion: bf16(1.5) goes through all.
vm::ValueSlice moved_half(vm::Flow last) {
  vm::ValueSlice slice;
  slice.instances = {instance(vm::Flow::store, ptx::Type::u32, 0x3fc0, 0, 1),
                     instance(vm::Flow::exchange, ptx::Type::b32, 0x3fc0, 1, 1),
                     instance(last, ptx::Type::u32, 0x3fc0, 2, 0)};
  slice.operands = {made_by(1), made_by(2)};
  slice.roots = {0};
  return slice;
}

TEST(SliceLines, HalvesOfWordsThatAreMovedHaveTheFormatOfWhatTheyAreStoredAs) {
  vm::ValueSlice slice = moved_half(vm::Flow::load);
  EXPECT_EQ(number_of(slice, 1), 0);
  name_moved_formats({ptx::Type::bf16}, slice);
  for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ(number_of(slice, n), 1.5) << n;
}

/// A count is no half of a word; nor is anything where the element is a float of 32 bits.
TEST(SliceLines, WhatIsComputedAsAnIntegerHasNoSuchFormat) {
  vm::ValueSlice slice = moved_half(vm::Flow::integer);
  name_moved_formats({ptx::Type::bf16}, slice);
  EXPECT_EQ(number_of(slice, 1), 1.5);
  EXPECT_EQ(number_of(slice, 2), 0);
  vm::ValueSlice of_float = moved_half(vm::Flow::load);
  name_moved_formats({ptx::Type::none}, of_float);
  EXPECT_EQ(number_of(of_float, 1), 0);
}

/// What a product takes as bf16 was moved as that, whatever its own sum is stored as.
TEST(SliceLines, TheFormatIsThatOfWhatTakesTheHalf) {
  vm::ValueSlice slice;
  slice.instances = {instance(vm::Flow::matrix, ptx::Type::f32, 0x3fc00000, 0, 1),
                     instance(vm::Flow::load, ptx::Type::u32, 0x3fc0, 1, 0)};
  slice.operands = {made_by(1, ptx::Type::bf16)};
  slice.roots = {0};
  name_moved_formats({ptx::Type::none}, slice);
  EXPECT_EQ(number_of(slice, 1), 1.5);
  EXPECT_EQ(slice.instances[0].type, ptx::Type::f32);
}

}  // namespace
}  // namespace assay
