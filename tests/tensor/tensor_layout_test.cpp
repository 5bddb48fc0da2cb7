#include "src/base/tensor/tensor_layout.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

const std::vector<Axis> kAxes{{"B", 2}, {"T", 3}, {"H", 2}, {"K", 4}};

TEST(TensorLayout, PositionsAndElementsAreEachOthersInverseInAnyOrderOfTheAxes) {
  for (const std::vector<int64_t>& strides : std::vector<std::vector<int64_t>>{
           {24, 8, 4, 1}, {24, 4, 12, 1}, {100, 20, 5, 1}, {1, 2, 6, 12}, {7, 20, 90, 1}, {200, 3, 11, 40}}) {
    ASSERT_EQ(stride_fault(kAxes, strides), "");
    TensorLayout layout = layout_of_strides(kAxes, strides);
    layout.offset = 5, layout.elements += 9;
    std::vector<int64_t> seen(static_cast<size_t>(layout.elements), -1);
    for (int64_t flat = 0; flat < 48; ++flat) {
      const int64_t at = layout.position(flat);
      ASSERT_TRUE(at >= 5 && at < layout.elements - 4);
      ASSERT_EQ(seen[static_cast<size_t>(at)], -1) << "two elements at " << at;
      seen[static_cast<size_t>(at)] = flat;
    }
    for (int64_t at = 0; at < layout.elements; ++at)
      EXPECT_EQ(layout.element(at), seen[static_cast<size_t>(at)]) << "position " << at;
  }
}

TEST(TensorLayout, AGapIsNamedByTheElementBeforeIt) {
  const TensorLayout padded = layout_of_strides({{"T", 3}, {"K", 4}}, {8, 1});
  EXPECT_EQ(padded.element(4), -1);
  EXPECT_EQ(padded.element_before(4), 3);
  EXPECT_EQ(padded.element_before(7), 3);
  EXPECT_EQ(padded.element_before(8), 4);
  EXPECT_EQ(padded.element_before(-1), -1);
  EXPECT_EQ(layout_of_strides({{"T", 0}, {"K", 4}}, {8, 1}).element_before(3), -1);
}

TEST(TensorLayout, OnlyRowsWithoutGapsAreDense) {
  EXPECT_TRUE(layout_of_strides(kAxes, {24, 8, 4, 1}).is_dense());
  EXPECT_TRUE(layout_of_strides({{"B", 1}, {"K", 4}}, {77, 1}).is_dense());
  EXPECT_FALSE(layout_of_strides(kAxes, {24, 4, 12, 1}).is_dense());
  TensorLayout behind = layout_of_strides(kAxes, {24, 8, 4, 1});
  behind.offset = 1;
  EXPECT_FALSE(behind.is_dense());
}

TEST(TensorLayout, StridesThatLeaveElementsNoPlaceOfTheirOwnAreNamed) {
  const struct {
    std::vector<int64_t> strides;
    std::string fault;
  } rows[] = {
      {{24, 8, 4}, "3 strides for 4 axes"},
      {{24, -8, 4, 1}, "axis T has the negative stride -8: copy the tensor forwards"},
      {{24, 8, 0, 1},
       "axis H has stride 0 along 2 elements: a tensor expanded over an axis is not taken, copy it"},
      {{24, 8, 3, 1}, "axis H has stride 3, but K spans 4 elements: elements overlap or interleave"},
      {{20, 8, 4, 1},
       "axis B has stride 20, but K and H and T span 24 elements: elements overlap or interleave"},
      {{24, 8, 4, 4}, "axis K has stride 4, but H spans 5 elements: elements overlap or interleave"},
      {{int64_t{1} << 62, 8, 4, 1}, "axis B with stride 4611686018427387904 reaches beyond 2^40 elements"},
      {{24, int64_t{1} << 62, 4, 1}, "axis T with stride 4611686018427387904 reaches beyond 2^40 elements"},
  };
  for (const auto& row : rows) EXPECT_EQ(stride_fault(kAxes, row.strides), row.fault);
  EXPECT_EQ(stride_fault({{"B", 1}, {"T", 3}}, {0, 1}), "")
      << "nothing is stepped along an axis of one element";
  EXPECT_EQ(stride_fault({{"B", 0}, {"T", 3}}, {0, 1}), "");
}

TEST(TensorLayout, MemoryHoldsTheElementsAndNaNBetweenThem) {
  Tensor x("x", Dtype::bf16, {{"T", 2}, {"K", 2}});
  for (int64_t i = 0; i < 4; ++i) x.set_bits(i, 0x1110 + static_cast<uint64_t>(i));
  const auto held = [&](std::vector<int64_t> strides) {
    const std::vector<std::byte> memory = strided_memory(x, layout_of_strides(x.axes, strides));
    Tensor all("m", Dtype::bf16, {{"K", 5}});
    EXPECT_EQ(memory.size(), all.data.size());
    all.data = memory;
    return std::vector{all.bits(0), all.bits(1), all.bits(2), all.bits(3), all.bits(4)};
  };
  EXPECT_EQ(held({3, 1}), (std::vector<uint64_t>{0x1110, 0x1111, 0xffff, 0x1112, 0x1113}));
  EXPECT_EQ(held({1, 3}), (std::vector<uint64_t>{0x1110, 0x1112, 0xffff, 0x1111, 0x1113}));
}

}  // namespace
}  // namespace assay
