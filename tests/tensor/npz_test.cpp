#include "src/base/tensor/npz.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/npy.h"
#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace npz_test {

const std::string kStored = ASSAY_SOURCE_DIR "/tests/data/stored.npz";
const std::string kDeflated = ASSAY_SOURCE_DIR "/tests/data/deflated.npz";
/// Of numpy.savez with zipfile.ZIP64_LIMIT = 0, as it writes what has 4 GiB or more.
const std::string kWide = ASSAY_SOURCE_DIR "/tests/data/zip64.npz";

TEST(Npz, StoredAndDeflatedTensorsAreReadByName) {
  for (const std::string& path : {kStored, kDeflated, kWide}) {
    const TensorMap tensors = read_tensors(path);
    ASSERT_EQ(tensors.size(), 2u) << path;
    const Tensor& q = tensors.at("q");
    EXPECT_EQ(q.name, "q");
    EXPECT_EQ(q.shape_text(), "[1,3,2,4]");
    for (int64_t i = 0; i < q.size(); ++i) EXPECT_EQ(q.value(i), static_cast<double>(i) / 4);
    EXPECT_EQ(tensors.at("cu_seqlens").dtype, Dtype::i64);
    EXPECT_EQ(tensors.at("cu_seqlens").value(1), 3);
  }
}

std::string message(std::string_view file) {
  try {
    parse_npz(file, "x.npz");
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Npz, EveryFileCutShortIsOneClearLine) {
  for (const std::string& path : {kStored, kDeflated, kWide}) {
    const std::string whole = read_file(path);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string line = message(whole.substr(0, size));
      EXPECT_EQ(line.find("x.npz: "), 0u) << size << ": " << line;
      EXPECT_EQ(line.find('\n'), line.npos) << line;
    }
  }
}

/// Counts and places that 16 and 32 bits do not hold are in another record before the end.
TEST(Npz, ADirectoryOfWideNumbersIsFound) {
  const std::string whole = read_file(kWide);
  const size_t end = whole.rfind("PK\x05\x06");
  std::string wide = whole;
  wide.replace(end + 8, 4, 4, '\xff');   // entries here and in all
  wide.replace(end + 16, 4, 4, '\xff');  // where the directory begins
  EXPECT_EQ(parse_npz(wide, "x.npz").at("q").data, read_npz(kWide).at("q").data);
  const size_t locator = wide.rfind("PK\x06\x07");
  EXPECT_NE(message(std::string(wide).replace(locator, 4, "XXXX")).find("its directory does not fit"),
            std::string::npos);
  EXPECT_NE(message(std::string(wide).replace(locator + 8, 1, "x")).find("its directory does not fit"),
            std::string::npos);
}

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
  return text;
}

/// One deflated file in an archive.
std::string archive_of(const std::string& name, const std::string& bytes) {
  std::string packed(bytes.size() + bytes.size() / 8 + 64, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  const std::string sizes = little_endian(8, 2) + little_endian(0, 4) + little_endian(crc, 4) +
                            little_endian(packed.size(), 4) + little_endian(bytes.size(), 4) +
                            little_endian(name.size(), 2);
  const std::string local = std::string("PK\x03\x04") + little_endian(20, 2) + little_endian(0, 2) + sizes +
                            little_endian(0, 2) + name + packed;
  const std::string directory = std::string("PK\x01\x02") + little_endian(20, 2) + little_endian(20, 2) +
                                little_endian(0, 2) + sizes + little_endian(0, 16) + name;
  return local + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(directory.size(), 4) + little_endian(local.size(), 4) + little_endian(0, 2);
}

/// More than zlib is given at once, packed and unpacked; values that do not pack well, and zeros, which do.
TEST(Npz, LargeDeflatedTensorsComeBackAsTheyWere) {
  const ScratchFolder folder;
  for (const bool zeros : {false, true}) {
    Tensor tensor("q", Dtype::fp32, {{"T", 100'003}});
    uint32_t state = 1;
    for (int64_t i = 0; !zeros && i < tensor.size(); ++i)
      tensor.set_bits(i, state = state * 1664525 + 1013904223);
    write_npy(folder / "q.npy", tensor);
    const std::string file = archive_of("q.npy", read_file(folder / "q.npy"));
    EXPECT_EQ(file.size() > 3 * (1 << 16), !zeros);
    EXPECT_EQ(parse_npz(file, "x.npz").at("q").data, tensor.data) << zeros;
    EXPECT_NE(message(file.substr(0, file.size() / 2)), "accepted");
  }
}

/// Any byte changed: the file is refused, or it was a byte that says nothing (a date, a version, a flag).
TEST(Npz, NoChangedByteGivesOtherNumbers) {
  for (const std::string& path : {kStored, kDeflated, kWide}) {
    const std::string whole = read_file(path);
    const TensorMap right = read_npz(path);
    for (size_t at = 0; at < whole.size(); ++at)
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        try {
          for (const auto& [name, tensor] : parse_npz(changed, "x.npz"))
            if (right.contains(name)) {
              EXPECT_EQ(tensor.data, right.at(name).data) << at;
            }
        } catch (const BadInput& error) {
          EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        }
      }
  }
}

TEST(Npz, WhatCannotBeReadIsNamed) {
  const std::string whole = read_file(kStored);
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string changed = whole;
    return message(changed.replace(at, bytes.size(), bytes));
  };
  const size_t entry = whole.find("PK\x01\x02"), data = whole.find("\x93NUMPY");
  EXPECT_NE(with(0, "XX").find("not a .npz file"), std::string::npos);
  EXPECT_NE(with(entry + 10, "\x0c").find("q.npy: packed by method 12"), std::string::npos);
  EXPECT_NE(with(entry + 24, "\xff\xff\xff\xff").find("corrupt: two sizes"), std::string::npos);
  EXPECT_NE(with(entry + 42, "\x05").find("its header is not where the directory says"), std::string::npos);
  EXPECT_NE(with(data + 200, "x").find("its checksum differs"), std::string::npos);
  EXPECT_NE(with(entry + 46, "q.txt").find("not a .npy file"), std::string::npos);
}

}  // namespace npz_test
}  // namespace assay
