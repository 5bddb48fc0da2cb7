#include "src/base/document/shell_word.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ShellWord, PlainOnesStayAndOthersAreQuoted) {
  EXPECT_EQ(shell_word("../a-b_c/x.json"), "../a-b_c/x.json");
  EXPECT_EQ(shell_word("n=3,rows=1"), "n=3,rows=1");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("y[1,3]"), "'y[1,3]'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace assay
