#include "src/verification/compare/digest.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay {
namespace {

TensorMap one_tensor(Dtype dtype) {
  TensorMap map;
  map.emplace("o", Tensor("o", dtype, {{"T", 3}, {"V", 2}}));
  return map;
}

TEST(Digest, SeesEveryBitOfEveryElement) {
  for (Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    TensorMap map = one_tensor(dtype);
    const uint64_t before = digest(map);
    for (int64_t i = 0; i < 6; ++i)
      for (int bit = 0; bit < format(dtype).bytes * 8; ++bit) {
        map.at("o").set_bits(i, uint64_t{1} << bit);
        EXPECT_NE(digest(map), before) << "element " << i << " bit " << bit;
        map.at("o").set_bits(i, 0);
      }
    EXPECT_EQ(digest(map), before);
  }
}

TEST(Digest, TakesAllNanAsOneAndSeesTheSignOfZero) {
  TensorMap a = one_tensor(Dtype::fp32), b = a;
  a.at("o").set_bits(1, 0x7fffffff);
  b.at("o").set_bits(1, 0xffc00001);
  EXPECT_EQ(digest(a), digest(b));
  b.at("o").set_bits(1, 0x7f800000);
  EXPECT_NE(digest(a), digest(b));
  b = one_tensor(Dtype::fp32);
  b.at("o").set_bits(0, 0x80000000);
  EXPECT_NE(digest(one_tensor(Dtype::fp32)), digest(b));
}

TEST(Digest, SeesNameShapeAndFormat) {
  TensorMap a = one_tensor(Dtype::fp32), transposed, renamed;
  transposed.emplace("o", Tensor("o", Dtype::fp32, {{"T", 2}, {"V", 3}}));
  renamed.emplace("p", Tensor("p", Dtype::fp32, {{"T", 3}, {"V", 2}}));
  EXPECT_NE(digest(a), digest(transposed));
  EXPECT_NE(digest(a), digest(renamed));
  EXPECT_NE(digest(a), digest(one_tensor(Dtype::bf16)));
}

}  // namespace
}  // namespace assay
