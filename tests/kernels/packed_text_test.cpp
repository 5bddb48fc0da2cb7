#include "kernels/packed_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace assay {
namespace {

TEST(PackedText, ComesBackWhole) {
  std::string text(100'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 3);
  for (const std::string& each : {std::string(), std::string(1, '\0'), text})
    EXPECT_EQ(unpacked(packed(each)), each);
}

/// Once a zlib stream followed the length.
TEST(PackedText, OfEarlierVersionsComesBackToo) {
  const std::string text(1000, 'x');
  std::string stream(compressBound(text.size()), '\0');
  uLongf size = stream.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(stream.data()), &size,
                     reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  const std::string length{static_cast<char>(1000 & 255), static_cast<char>(1000 >> 8), 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(unpacked(length + stream.substr(0, size)), text);
  EXPECT_EQ(unpacked(length + stream.substr(0, size - 1)), std::nullopt);
}

TEST(PackedText, IsNothingWhereBytesAreMissingOrOthers) {
  const std::string bytes = packed("a text that was kept, and only a part of it came back");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(unpacked(bytes.substr(0, size)), std::nullopt) << size;
  for (const size_t at : {size_t{0}, size_t{7}, bytes.size() / 2, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_EQ(unpacked(changed), std::nullopt) << at;
  }
}

}  // namespace
}  // namespace assay
