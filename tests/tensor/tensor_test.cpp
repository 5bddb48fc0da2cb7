#include "src/base/tensor/tensor.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Tensor, FlatPositionsAndIndicesAreEachOthersInverse) {
  const Tensor t("o", Dtype::bf16, {{"B", 2}, {"T", 3}, {"H", 1}, {"V", 5}});
  EXPECT_EQ(t.size(), 30);
  EXPECT_EQ(t.bytes(), 60);
  EXPECT_EQ(t.strides(), (std::vector<int64_t>{15, 5, 5, 1}));
  EXPECT_EQ(t.index(23), (std::vector<int64_t>{1, 1, 0, 3}));
  for (int64_t flat = 0; flat < t.size(); ++flat) EXPECT_EQ(t.offset(t.index(flat)), flat);
}

TEST(Tensor, HoldsAnElementPerNumberAndNoneWhereAnAxisIsEmpty) {
  EXPECT_EQ(Tensor("scale", Dtype::fp64, {}).bytes(), 8);
  EXPECT_EQ(Tensor("o", Dtype::fp32, {{"T", 0}, {"V", 4}}).bytes(), 0);
}

TEST(Tensor, RoundsAValueOnceAndKeepsBitsAsTheyAre) {
  Tensor t("o", Dtype::bf16, {{"V", 3}});
  t.set(1, 1.00390625);  // 1 + 2^-8, half way: to even
  EXPECT_EQ(t.value(1), 1.0);
  t.set(1, 1.01171875);  // 1 + 3 * 2^-8
  EXPECT_EQ(t.bits(1), 0x3f82u);
  t.set_bits(2, 0xffc1);
  EXPECT_EQ(t.bits(2), 0xffc1u);
  EXPECT_EQ(t.bits(0), 0u) << "neighbours stay";
  EXPECT_EQ(t.as<uint16_t>()[1], 0x3f82);
}

TEST(Tensor, NamesItsElementsAndItsShape) {
  const Tensor t("cu_seqlens", Dtype::i32, {{"N", 4}}), o("o", Dtype::fp16, {{"T", 2}, {"V", 3}});
  EXPECT_EQ(t.element_name(2), "cu_seqlens[n=2]");
  EXPECT_EQ(o.element_name(5), "o[t=1,v=2]");
  EXPECT_EQ(o.shape_text(), "[T=2,V=3]");
}

}  // namespace
}  // namespace assay
