#include "src/base/tensor/zip.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/zip_writer.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace zip_test {

const ZipFiles kFiles{{"a.txt", "first"}, {"b/c.bin", std::string("\0\1\2PK\5\6", 7)}, {"empty", ""}};

std::string written(const ZipFiles& files) {
  const ScratchFolder folder;
  write_zip(folder / "z.zip", files);
  return read_file(folder / "z.zip");
}

TEST(Zip, WhatIsWrittenIsReadBackAndTheSameIsTheSameBytes) {
  EXPECT_EQ(parse_zip(written(kFiles), "z.zip", "archive"), kFiles);
  EXPECT_EQ(written(kFiles), written(kFiles));
  EXPECT_TRUE(parse_zip(written({}), "z.zip", "archive").empty());
}

TEST(Zip, MoreThanIsAllowedIsNotUnpacked) {
  EXPECT_THROW(parse_zip(written(kFiles), "z.zip", "archive", 11), BadInput);
  EXPECT_NO_THROW(parse_zip(written(kFiles), "z.zip", "archive", 12));
}

TEST(Zip, ATruncatedOrChangedOneIsBadInputOrTheSame) {
  const std::string good = written(kFiles);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(parse_zip(good.substr(0, size), "z.zip", "archive"), BadInput) << size;
  for (size_t at = 0; at < good.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1 << bit);
      try {
        for (const auto& [name, bytes] : parse_zip(bad, "z.zip", "archive")) EXPECT_LE(bytes.size(), 8u);
      } catch (const BadInput& error) {
        EXPECT_EQ(std::string(error.what()).find("z.zip"), 0u);
      }
    }
}

}  // namespace zip_test
}  // namespace assay
