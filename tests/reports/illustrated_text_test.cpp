#include "reports/illustrated_text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(IllustratedText, PicturesHaveNamesThatAreFilesAndDiffer) {
  IllustratedText text;
  for (const char* name : {"ratio_../a b", "ratio_..-a-b", "ratio_gla.chunk%m1"})
    text.add_picture(name, "a | [b]", "<svg/>");
  ASSERT_EQ(text.pictures.size(), 3u);
  EXPECT_EQ(text.pictures[0].first, "1_ratio_..-a-b.svg");
  EXPECT_EQ(text.pictures[1].first, "2_ratio_..-a-b.svg");
  EXPECT_EQ(text.pictures[2].first, "3_ratio_gla.chunk-m1.svg");
  for (const auto& [name, svg] : text.pictures)
    EXPECT_NE(text.markdown.find("](" + name + ")"), std::string::npos) << text.markdown;
  EXPECT_EQ(text.markdown.find("a | [b]"), std::string::npos) << "captions are escaped";
}

}  // namespace
}  // namespace assay
