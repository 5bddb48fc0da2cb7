#include "src/base/ptx/printable.h"

#include <gtest/gtest.h>

#include "src/base/ptx/program.h"

namespace assay::ptx {
namespace {

TEST(Printable, KeepsTextAndSpellsOutTheRest) {
  const std::pair<std::string, std::string> pairs[] = {
      {"kernels/gla/chunk.cu", "kernels/gla/chunk.cu"},
      {"caf\xc3\xa9/\xe6\xa0\xb8.cu", "caf\xc3\xa9/\xe6\xa0\xb8.cu"},
      {"\xf0\x9f\x94\xac.cu", "\xf0\x9f\x94\xac.cu"},
      {"a\tb\x1b[31m\x7f", "a\\x09b\\x1b[31m\\x7f"},
      {"\xff\xc3(", "\\xff\\xc3("},
      {"\xc0\xaf", "\\xc0\\xaf"},           // longer than it need be
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // half of a surrogate pair
      {"\xc2\x9b", "\\xc2\\x9b"},           // a control character of Latin-1
      {"\xe6\xa0", "\\xe6\\xa0"}};          // cut short
  for (const auto& [name, expected] : pairs) EXPECT_EQ(printable(name), expected);
}

TEST(Printable, IsWhatTheParserMakesOfFileNames) {
  const Module module =
      parse(".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"a\x01\xff.cu\"\n", "t.ptx");
  EXPECT_EQ(module.files.at(0), "a\\x01\\xff.cu");
}

}  // namespace
}  // namespace assay::ptx
