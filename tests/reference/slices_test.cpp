#include "reference/slices.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

TEST(Slices, are_one_per_sequence_and_head_packed_or_not) {
  Problem p;
  p.sizes.B = 2, p.sizes.T = 5, p.sizes.H = 3;
  auto slices = slices_of(p);
  ASSERT_EQ(slices.size(), 6u);
  EXPECT_EQ(slices[4].n, 1);
  EXPECT_EQ(slices[4].h, 1);
  EXPECT_EQ(slices[4].first_row, 5);
  p.sizes.B = 1, p.cu_seqlens = {0, 0, 2, 5};
  slices = slices_of(p);
  ASSERT_EQ(slices.size(), 9u);
  EXPECT_EQ(slices[0].tokens, 0);
  EXPECT_EQ(slices[8].first_row, 2);
  EXPECT_EQ(slices[8].tokens, 3);
}

TEST(Slices, refuse_offsets_that_do_not_pack_the_tokens) {
  const std::vector<std::vector<int64_t>> wrong = {{0, 4}, {1, 5}, {0, 3, 2, 5}, {0}};
  for (const auto& offsets : wrong) {
    Problem p;
    p.sizes.T = 5, p.cu_seqlens = offsets;
    EXPECT_THROW(slices_of(p), BadInput);
  }
  Problem two;
  two.sizes.B = 2, two.sizes.T = 5, two.cu_seqlens = {0, 5};
  EXPECT_THROW(slices_of(two), BadInput);
}

TEST(Slices, decode_rows_of_one_head_as_the_tensor_itself_does_in_every_format) {
  std::mt19937_64 random(1);
  for (Dtype dtype : {Dtype::fp64, Dtype::fp32, Dtype::tf32, Dtype::fp16, Dtype::bf16}) {
    const Tensor x = draw_tensor("q", dtype, {{"B", 2}, {"T", 3}, {"H", 2}, {"K", 4}}, random);
    std::vector<double> rows(3 * 4);
    decode_rows(x, 2, 3, 2, 1, 4, rows.data());
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t c = 0; c < 4; ++c)
        EXPECT_EQ(rows[static_cast<size_t>(r * 4 + c)], x.value(((2 + r) * 2 + 1) * 4 + c));
  }
}

}  // namespace
}  // namespace assay
