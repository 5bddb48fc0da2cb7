#include "src/result/checkout.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace {

bool git(const ScratchFolder& where, const std::string& arguments) {
  const std::string line = "git -C '" + (where / "") +
                           "' -c user.name=n -c user.email=n@n -c init.defaultBranch=trunk " + arguments +
                           " >/dev/null 2>&1";
  return std::system(line.c_str()) == 0;
}

TEST(Checkout, SaysCommitBranchAndWhetherFilesHaveChanged) {
  const ScratchFolder here;
  if (!git(here, "init")) GTEST_SKIP() << "no git";
  EXPECT_FALSE(checkout_of(here / "").has_value()) << "no commit yet";
  write_file(here / "a.cu", "1");
  ASSERT_TRUE(git(here, "add a.cu") && git(here, "commit -m first"));
  const auto clean = checkout_of(here / "");
  ASSERT_TRUE(clean.has_value());
  EXPECT_EQ(clean->commit.size(), 40u);
  EXPECT_EQ(clean->branch, "trunk");
  EXPECT_FALSE(clean->dirty);
  EXPECT_EQ(text_of(*clean), clean->commit.substr(0, 12) + " (trunk)");
  write_file(here / "new.cu", "1");
  EXPECT_FALSE(checkout_of(here / "")->dirty) << "a file that is not tracked";
  write_file(here / "a.cu", "2");
  EXPECT_TRUE(checkout_of(here / "")->dirty);
}

TEST(Checkout, ThereIsNoneOutsideOfOne) {
  EXPECT_FALSE(checkout_of("/proc").has_value());
}

}  // namespace
}  // namespace assay
