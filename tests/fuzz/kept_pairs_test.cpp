#include "fuzz/kept_pairs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/feature_pairs.h"
#include "tests/tensor/scoped_environment.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class KeptPairs : public testing::Test {
 protected:
  const fs::path folder_ =
      fs::path(testing::TempDir()) / ("assay-kept-pairs-" + std::to_string(getpid()));  // of this shard
  const ScopedEnvironment cache_{"ASSAY_CACHE", (fs::remove_all(folder_), folder_)};
  const Kernel& kernel_ = find_kernel("hgrn.fused_recurrent");
  const fs::path file_ = folder_ / "hgrn.fused_recurrent.pairs";

  int64_t possible(const Kernel& kernel) {
    return FeaturePairs(kernel, find_operator(kernel.operator_name)).possible();
  }
  std::string text() {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) { std::ofstream(file_) << text; }
};

TEST_F(KeptPairs, WhatThisProgramFoundIsNotLookedForAgain) {
  const int64_t found = possible(kernel_);
  EXPECT_GT(found, 0);
  std::string other = text();
  ASSERT_FALSE(other.empty());
  EXPECT_EQ(possible(kernel_), found);
  for (size_t i = other.find('\n') + 1; i < other.size(); ++i) other[i] = '0';
  write(other);
  EXPECT_EQ(possible(kernel_), 0) << "as the file says";
}

TEST_F(KeptPairs, AnotherProgramsAreLookedForAgainAndReplaced) {
  const int64_t found = possible(kernel_);
  const std::string own = text();
  std::string other = own;
  const size_t end = other.find('\n');
  other[end - 1] = other[end - 1] == '0' ? '1' : '0';
  for (size_t i = end + 1; i < other.size(); ++i) other[i] = '0';
  write(other);
  EXPECT_EQ(possible(kernel_), found);
  EXPECT_EQ(text(), own);
}

TEST_F(KeptPairs, WhatIsNotWholeIsLookedForAgain) {
  const int64_t found = possible(kernel_);
  const std::string own = text();
  for (const std::string& broken : {own.substr(0, own.size() - 1), own + '1', std::string()}) {
    write(broken);
    EXPECT_EQ(possible(kernel_), found);
    EXPECT_EQ(text(), own);
  }
}

TEST_F(KeptPairs, OfAKernelThatIsNotOfTheTableNothingIsKept) {
  const Kernel own = kernel_;
  EXPECT_GT(possible(own), 0);
  EXPECT_FALSE(fs::exists(file_));
}

}  // namespace
}  // namespace assay
