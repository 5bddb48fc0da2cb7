#include "src/campaign/sweep/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

std::filesystem::path fresh(const char* name) {
  const auto path = std::filesystem::temp_directory_path() / name;
  std::filesystem::remove(path);
  return path;
}

SweepCell cell(const char* kernel) {
  SweepCell c;
  c.kernel = kernel;
  c.settings = {{"length", "64"}};
  c.samples.resize(2);
  c.samples[1].max_error = 0x1.8p-7;
  return c;
}

TEST(Journal, GivesBackWhatWasAddedAlsoBehindALineCutOffByAKill) {
  const auto path = fresh("assay_journal_test");
  {
    Journal journal(path, "one");
    journal.add(3, {cell("gla.chunk")});
    journal.add(5, {cell("gla.fused_recurrent"), cell("x")});
  }
  std::ofstream(path, std::ios::app) << R"({"point":7,"cel)";
  Journal again(path, "one");
  ASSERT_EQ(again.points().size(), 2u);
  EXPECT_EQ(again.points().at(3).at(0).samples.at(1).max_error, 0x1.8p-7);
  EXPECT_EQ(again.points().at(5).at(1).kernel, "x");
  again.remove();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Journal, OfAnotherSweepOrNoneIsRefused) {
  const auto path = fresh("assay_journal_test_other");
  { Journal journal(path, "one"); }
  EXPECT_THROW(Journal(path, "two"), BadInput);
  std::ofstream(path) << "text\n";
  EXPECT_THROW(Journal(path, "one"), BadInput);
}

}  // namespace
}  // namespace assay
