#include "src/base/tensor/zip_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace zip_writer_test {

class ZipWriter : public testing::Test {
 protected:
  const ScratchFolder folder;
};

/// `bytes` long, zeros but for `begin` and `end`.
ZipPart mostly_zeros(uint64_t bytes, const std::string& begin, const std::string& end) {
  return {bytes, [=](const ZipPart::Take& take) {
            const std::string zeros(1 << 20, '\0');
            take(begin);
            for (uint64_t left = bytes - begin.size() - end.size(); left > 0;) {
              const uint64_t now = std::min<uint64_t>(left, zeros.size());
              take(std::string_view(zeros).substr(0, now));
              left -= now;
            }
            take(end);
          }};
}

TEST_F(ZipWriter, WritesTheSameContentsAsTheSameBytes) {
  const ZipFiles files{{"a.txt", "first"}, {"b/c.bin", std::string("\0\1\2PK\5\6", 7)}, {"empty", ""}};
  write_zip(folder / "a.zip", files);
  write_zip(folder / "b.zip", files);
  EXPECT_EQ(read_file(folder / "a.zip"), read_file(folder / "b.zip"));
  EXPECT_EQ(parse_zip(read_file(folder / "a.zip"), "a.zip", "archive"), files);
}

TEST_F(ZipWriter, ZerosThatAreLeftOutAreReadBackAndAreInTheChecksum) {
  const std::string bytes = "begin" + std::string(5 << 20, '\0') + "end";
  write_zip(folder / "z.zip", ZipFiles{{"x", bytes}});
  EXPECT_EQ(parse_zip(read_file(folder / "z.zip"), "z.zip", "archive").at("x"), bytes);
}

TEST_F(ZipWriter, SizesAndPlacesBeyond4GiBHave64Bits) {
  const uint64_t bytes = (uint64_t{1} << 32) + 5;
  write_zip(folder / "z.zip",
            ZipParts{{"large", mostly_zeros(bytes, "begin", "end")}, {"later", zip_part("behind it")}});
  const MappedFile mapped(folder / "z.zip");
  std::map<std::string, std::string_view> left;
  const ZipFiles held = parse_zip(mapped, "z.zip", "archive", uint64_t{1} << 34, left);
  EXPECT_EQ(held.at("later"), "behind it");
  const std::string_view large = left.at("large");
  ASSERT_EQ(large.size(), bytes);
  EXPECT_TRUE(large.starts_with("begin"));
  EXPECT_TRUE(large.ends_with("end"));
}

TEST_F(ZipWriter, MoreFilesThan16BitsCountAreAllRead) {
  ZipFiles files;
  for (int i = 0; i < 65540; ++i) files[std::to_string(i)] = "";
  write_zip(folder / "z.zip", files);
  EXPECT_EQ(parse_zip(read_file(folder / "z.zip"), "z.zip", "archive").size(), files.size());
}

TEST_F(ZipWriter, AFileIsTakenAsItLies) {
  const std::string bytes = "begin" + std::string(3 << 20, 'x') + "end";
  write_file(folder / "x", bytes);
  write_zip(folder / "z.zip", ZipParts{{"x", zip_part(std::make_shared<const MappedFile>(folder / "x"))}});
  EXPECT_EQ(parse_zip(read_file(folder / "z.zip"), "z.zip", "archive").at("x"), bytes);
}

TEST_F(ZipWriter, ContentsThatAreNotWhatTheirSizeSaysAreRefused) {
  const ZipPart short_one{4, [](const ZipPart::Take& take) { take("abc"); }};
  EXPECT_THROW(write_zip(folder / "z.zip", ZipParts{{"x", short_one}}), BadInput);
}

TEST_F(ZipWriter, APipeIsRefusedInOneLine) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string path = "/dev/fd/" + std::to_string(ends[1]);
  try {
    write_zip(path, ZipFiles{{"x", "contents"}});
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_EQ(error.what(), path + ": cannot be written: no file that can be written to twice; name a file");
  }
  close(ends[0]), close(ends[1]);
}

}  // namespace zip_writer_test
}  // namespace assay
