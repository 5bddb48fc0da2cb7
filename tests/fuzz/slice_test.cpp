#include "fuzz/slice.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

/// Element value = its flat offset.
Tensor counted(Dtype dtype) {
  Tensor tensor("x", dtype, {{"B", 2}, {"T", 5}, {"H", 3}});
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

TEST(Slice, HoldsTheElementsOfItsRangeInOrder) {
  for (Dtype dtype : {Dtype::bf16, Dtype::fp32, Dtype::fp64}) {
    const Tensor part = slice(counted(dtype), "T", 1, 3);
    EXPECT_EQ(part.shape_text(), "[B=2,T=2,H=3]");
    EXPECT_EQ(part.value(0), 3);
    EXPECT_EQ(part.value(6), 18);
    EXPECT_EQ(part.value(11), 23);
  }
}

TEST(Slice, WithoutTheAxisTheTensorIsUnchanged) {
  EXPECT_EQ(slice(counted(Dtype::fp32), "K", 0, 1).data, counted(Dtype::fp32).data);
}

TEST(Slice, PartsJoinedAreTheWholeWhereverItIsCut) {
  const Tensor whole = counted(Dtype::fp32);
  for (int64_t at = 0; at <= 5; ++at) {
    const Tensor joined = concatenate(slice(whole, "T", 0, at), slice(whole, "T", at, 5), "T");
    EXPECT_EQ(joined.data, whole.data) << at;
    EXPECT_EQ(joined.axes, whole.axes) << at;
  }
}

TEST(Slice, ReversedTwiceIsTheSameAndOnceMovesTheEnds) {
  const Tensor whole = counted(Dtype::fp32), once = reversed(whole, "H");
  EXPECT_EQ(once.value(0), 2);
  EXPECT_EQ(once.value(2), 0);
  EXPECT_EQ(once.value(29), 27);
  EXPECT_EQ(reversed(once, "H").data, whole.data);
}

}  // namespace
}  // namespace assay
