#include "src/verification/compare/output_blocks.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

/// Every element is in one row of one block.
void expect_partition(const OutputBlocks& blocks, int64_t size) {
  std::set<int64_t> seen;
  for (const OutputBlock& b : blocks.blocks())
    for (int64_t r = 0; r < b.rows; ++r)
      for (int64_t c = 0; c < blocks.columns(); ++c) EXPECT_TRUE(seen.insert(blocks.row(b, r) + c).second);
  EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
  EXPECT_EQ(seen.empty() ? -1 : *seen.rbegin(), size - 1);
}

TEST(OutputBlocks, EveryElementIsInOneBlockWhateverTheAxes) {
  expect_partition({"o", {{"B", 2}, {"T", 130}, {"H", 3}, {"V", 5}}, {}}, 2 * 130 * 3 * 5);
  expect_partition({"o", {{"B", 1}, {"T", 130}, {"HV", 2}, {"V", 5}}, {0, 0, 64, 129, 130}}, 130 * 2 * 5);
  expect_partition({"dg", {{"B", 2}, {"T", 65}, {"H", 3}}, {}}, 2 * 65 * 3);
  expect_partition({"o", {{"B", 2}, {"T", 65}, {"D", 7}}, {}}, 2 * 65 * 7);
  expect_partition({"final_state", {{"N", 3}, {"H", 2}, {"K", 70}, {"V", 4}}, {}}, 3 * 2 * 70 * 4);
  expect_partition({"dweight", {{"D", 100}, {"K", 4}}, {}}, 400);
  expect_partition({"o", {{"B", 2}, {"T", 0}, {"H", 3}, {"V", 5}}, {}}, 0);
}

TEST(OutputBlocks, ABlockIsFoundByItsSequenceHeadAndFirstToken) {
  const OutputBlocks blocks("o", {{"B", 1}, {"T", 200}, {"H", 2}, {"V", 3}}, {0, 70, 200});
  const OutputBlock* const b = blocks.find(1, 1, 64);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->rows, 64);
  EXPECT_EQ(b->of, 130);
  EXPECT_EQ(blocks.row(*b, 0), ((70 + 64) * 2 + 1) * 3);
  EXPECT_EQ(blocks.find(1, 1, 63), nullptr);
  EXPECT_EQ(blocks.find(2, 0, 0), nullptr);
}

TEST(OutputBlocks, PartsAreBlocksQuartersSequencesAndAllOfIt) {
  const OutputBlocks blocks("o", {{"B", 1}, {"T", 1024}, {"H", 2}, {"V", 3}}, {});
  const std::vector<OutputPart> parts = blocks.parts();
  ASSERT_EQ(parts.size(), 2 * (16 + 4 + 1) + 1 + 1);
  EXPECT_EQ(parts.back().blocks.size(), 32u);
  const auto late = parts[parts.size() - 2];
  EXPECT_TRUE(late.late);
  EXPECT_EQ(late.blocks.size(), 8u);
  int of_last_quarter = 0;
  for (const OutputPart& part : parts)
    of_last_quarter += part.where == "o of tokens 768 to 1023, head 1, sequence 0";
  EXPECT_EQ(of_last_quarter, 1);
}

}  // namespace
}  // namespace assay
