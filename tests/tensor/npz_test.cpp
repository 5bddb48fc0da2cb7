#include "src/tensor/npz.h"

#include <gtest/gtest.h>

#include "src/numerics/bad_input.h"
#include "src/tensor/tensor_file.h"

namespace assay {
namespace {

const std::string kStored = ASSAY_SOURCE_DIR "/tests/data/stored.npz";
const std::string kDeflated = ASSAY_SOURCE_DIR "/tests/data/deflated.npz";

TEST(Npz, StoredAndDeflatedTensorsAreReadByName) {
  for (const std::string& path : {kStored, kDeflated}) {
    const TensorMap tensors = read_tensors(path);
    ASSERT_EQ(tensors.size(), 2u) << path;
    const Tensor& q = tensors.at("q");
    EXPECT_EQ(q.name, "q");
    EXPECT_EQ(q.shape_text(), "[=1,=3,=2,=4]");
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
  for (const std::string& path : {kStored, kDeflated}) {
    const std::string whole = read_file(path);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string line = message(whole.substr(0, size));
      EXPECT_EQ(line.find("x.npz: "), 0u) << size << ": " << line;
      EXPECT_EQ(line.find('\n'), line.npos) << line;
    }
  }
}

/// Any byte changed: the file is refused, or it was a byte that says nothing (a date, a version, a flag).
TEST(Npz, NoChangedByteGivesOtherNumbers) {
  for (const std::string& path : {kStored, kDeflated}) {
    const std::string whole = read_file(path);
    const TensorMap right = read_npz(path);
    for (size_t at = 0; at < whole.size(); ++at)
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        try {
          for (const auto& [name, tensor] : parse_npz(changed, "x.npz"))
            if (right.contains(name)) EXPECT_EQ(tensor.data, right.at(name).data) << at;
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
  EXPECT_NE(with(entry + 24, "\xff\xff\xff\xff").find("4 GiB or more"), std::string::npos);
  EXPECT_NE(with(entry + 42, "\x05").find("its header is not where the directory says"), std::string::npos);
  EXPECT_NE(with(data + 200, "x").find("its checksum differs"), std::string::npos);
  EXPECT_NE(with(entry + 46, "q.txt").find("not a .npy file"), std::string::npos);
}

}  // namespace
}  // namespace assay
