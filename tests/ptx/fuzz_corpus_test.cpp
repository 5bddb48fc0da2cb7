// The texts that parser_fuzzer kept: each goes through the front end as it is and cut short.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/ptx/front_end.h"
#include "tests/ptx/token_mutation.h"

namespace assay::ptx {
namespace {

std::vector<std::string> kept_texts() {
  std::vector<std::filesystem::path> paths;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(ASSAY_SOURCE_DIR) + "/tests/ptx/fuzz_corpus"))
    paths.push_back(file.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

TEST(FuzzCorpus, EveryTextIsAcceptedOrRefusedWithAPosition) {
  const std::vector<std::string> texts = kept_texts();
  ASSERT_GT(texts.size(), 100u);
  size_t accepted = 0;
  for (const std::string& text : texts) accepted += front_end(text).empty();
  EXPECT_GT(accepted, 10u);
  EXPECT_LT(accepted, texts.size());
}

TEST(FuzzCorpus, CorruptedTextsAreAcceptedOrRefusedWithAPosition) {
  const std::vector<std::string> texts = kept_texts();
  const uint64_t seed = 1;
  std::mt19937_64 random(seed);
  size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string made =
        mutate_tokens(texts[random() % texts.size()], 1 + static_cast<int>(random() % 3), random);
    EXPECT_NO_THROW(refused += !front_end(made).empty()) << "seed " << seed << ", number " << i;
  }
  EXPECT_GT(refused, 100u);
}

TEST(FrontEnd, ThrowsNothingButItsOwnComplaint) {
  EXPECT_NE(front_end("no PTX").find("expected a directive"), std::string::npos);
  EXPECT_EQ(front_end(".version 8.0\n.target sm_90\n.entry k() { ret; }"), "");
}

}  // namespace
}  // namespace assay::ptx
