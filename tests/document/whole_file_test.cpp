#include "src/base/document/whole_file.h"

#include <gtest/gtest.h>

#include <iterator>

#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace whole_file_test {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(WholeFile, IsThereWithItsFolderAndNothingBesideIt) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch / "a", path = folder / "b.txt";
  EXPECT_TRUE(write_whole(path, "first"));
  EXPECT_TRUE(write_whole(path, "second"));
  EXPECT_EQ(text_of(path), "second");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(WholeFile, WhatCannotTakeItsPlaceIsSaidAndLeavesNothing) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch / "a", taken = folder / "taken";
  std::filesystem::create_directories(taken / "inside");
  EXPECT_FALSE(write_whole(taken, "text"));
  EXPECT_EQ(files_in(folder), 1);
}

}  // namespace whole_file_test
}  // namespace assay
