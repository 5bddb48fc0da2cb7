#include "src/base/vm/paged_tensor.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/base/tensor/reached_elements.h"

namespace assay::vm {
namespace paged_tensor_test {

constexpr int64_t kElements = 3000;  // of two bytes: not quite six pages

/// Element i is i + 1.
class Counting : public TensorSource {
 public:
  uint64_t bits(int64_t flat) const override { return static_cast<uint64_t>(flat + 1); }
};

Tensor counting() {
  Tensor tensor;
  tensor.name = "x", tensor.dtype = Dtype::bf16, tensor.axes = {{"T", kElements}};
  tensor.source = std::make_shared<Counting>();
  return tensor;
}

uint16_t read(PagedBytes& pages, int64_t element) {
  uint16_t bits = 0;
  std::memcpy(&bits, pages.at(static_cast<uint64_t>(2 * element)), sizeof bits);
  return bits;
}

TEST(PagedTensor, PagesHoldTheTensorsElementsAndZerosBehindItsEnd) {
  const auto pages = pages_of(counting());
  for (const int64_t element : {int64_t{0}, int64_t{511}, int64_t{512}, kElements - 1})
    EXPECT_EQ(read(*pages, element), element + 1);
  EXPECT_EQ(read(*pages, kElements), 0);
}

TEST(PagedTensor, PoisonIsTheByteInEveryFormat) {
  EXPECT_EQ(poisoned_elements(Dtype::u8, 0x7b)->bits(5), 0x7bu);
  EXPECT_EQ(poisoned_elements(Dtype::bf16, 0x7b)->bits(5), 0x7b7bu);
  EXPECT_EQ(poisoned_elements(Dtype::fp64, 0x7b)->bits(5), 0x7b7b7b7b7b7b7b7bu);
  EXPECT_EQ(read(*poisoned_pages(0x7b), 700), 0x7b7b);
}

TEST(PagedTensor, ElementsAreThoseOfTouchedPagesAndElsewhereThoseOfBefore) {
  const auto pages = poisoned_pages(0xff);
  const uint16_t written = 0x1234;
  std::memcpy(pages->at(2 * 600), &written, sizeof written);  // page 1
  pages->at(2 * (kElements - 1));                             // the last one
  const auto after = paged_elements(pages, std::make_shared<Counting>(), Dtype::bf16, kElements);
  EXPECT_EQ(after->bits(600), 0x1234u);
  EXPECT_EQ(after->bits(601), 0xffffu);
  EXPECT_EQ(after->bits(511), 512u);
  EXPECT_EQ(after->bits(1024), 1025u);
  const auto* reached = dynamic_cast<const ReachedElements*>(after.get());
  ASSERT_NE(reached, nullptr);
  const std::vector<std::pair<int64_t, int64_t>> ranges = {{512, 1024}, {2560, kElements}};
  EXPECT_EQ(reached->reached(), ranges);
}

}  // namespace paged_tensor_test
}  // namespace assay::vm
