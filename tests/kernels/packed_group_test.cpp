#include "kernels/packed_group.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(PackedGroup, GivesEachTextBackWhole) {
  std::string text(100'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 3);
  const std::vector<std::pair<std::string, std::string>> texts = {{"gla/chunk.bf16", text},
                                                                  {"empty", ""},
                                                                  {"zero", std::string(1, '\0')},
                                                                  {"lines", "a 1\n\nb 2\n"},
                                                                  {"gla/chunk", text + "y"}};
  const std::string bytes = packed_group(texts);
  for (const auto& [name, each] : texts) EXPECT_EQ(text_of_group(bytes, name), each) << name;
  for (const char* other : {"gla", "", "a", "gla/chunk.bf1"})
    EXPECT_EQ(text_of_group(bytes, other), std::nullopt) << other;
  EXPECT_LT(bytes.size(), packed_group({texts.front()}).size() + 1000)
      << "what two texts share is kept twice";
  EXPECT_EQ(text_of_group(packed_group({}), "a"), std::nullopt);
}

TEST(PackedGroup, IsNothingWhereBytesAreMissingOrOthers) {
  const std::string bytes =
      packed_group({{"a", "a text that was kept, and only a part of it came back"}, {"b", "another"}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(text_of_group(std::string_view(bytes).substr(0, size), "b"), std::nullopt) << size;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const std::optional<std::string> text = text_of_group(changed, "b");
    EXPECT_TRUE(!text || text == "another") << at;
  }
}

}  // namespace
}  // namespace assay
