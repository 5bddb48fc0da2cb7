// The files in tests/tensor/fuzz_corpus, seeds of the fuzzers and what these have found: each is read as it
// is and cut short.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/reader_contract.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

const std::string kCorpus = ASSAY_SOURCE_DIR "/tests/tensor/fuzz_corpus/";

TEST(FuzzCorpus, EveryFileIsReadOrRefusedWholeOrCutShort) {
  for (const Reader& reader : readers()) {
    size_t files = 0, taken = 0;
    for (const auto& entry : fs::directory_iterator(kCorpus + std::string(reader.name))) {
      const std::string file = read_file(entry.path().string());
      EXPECT_NO_THROW(taken += read_any(reader, file).empty()) << entry.path();
      for (size_t size = 0; size < file.size(); size += 1 + file.size() / 64)
        EXPECT_NO_THROW(read_any(reader, file.substr(0, size))) << entry.path() << " cut to " << size;
      ++files;
    }
    EXPECT_GT(taken, 1u) << reader.name;
    EXPECT_GT(files, taken + 2) << reader.name;
  }
}

/// Files that are wrong in one way each, and what is said of it.
TEST(FuzzCorpus, WhatIsWrongWithAFileIsSaid) {
  const std::pair<const char*, const char*> table[] = {
      {"safetensors/key_twice", "FILE: key \"q\" stands twice in one object; leave one out"},
      {"safetensors/deep", "FILE: nests deeper than 64"},
      {"safetensors/no_whole_numbers",
       "FILE: tensor q: not a safetensors file: bad header: its shape is no list of whole numbers"},
      {"safetensors/beyond_int64", "FILE: tensor q: impossible shape"},
      {"safetensors/overlap", "FILE: tensor q: its bytes overlap those of tensor k"},
      {"npy/big_endian", "FILE: element type '>f4' is not supported; use little-endian"},
      {"npy/key_twice", "FILE: not a .npy file: its header has 'shape' twice"},
      {"npy/number_for_shape", "FILE: not a .npy file: bad shape"},
      {"npy/beyond_int64", "FILE: impossible shape"},
      {"npz/key_twice", "FILE: q.npy: twice in the file"},
      {"npz/empty", "FILE: a .npz file without tensors"},
      {"npz/overlap", "FILE: corrupt .npz file: a.npy and b.npy overlap"},
      {"npz/promises_more", "FILE: a.npy: corrupt: its data do not unpack to its size"},
      {"npz/directory_beyond", "FILE: corrupt .npz file: its directory does not fit"}};
  for (const auto& [path, message] : table)
    for (const Reader& reader : readers())
      if (std::string_view(path).starts_with(std::string(reader.name) + "/")) {
        EXPECT_EQ(read_any(reader, read_file(kCorpus + path)).rfind(message, 0), 0u)
            << path << ": " << read_any(reader, read_file(kCorpus + path));
      }
}

}  // namespace
}  // namespace assay
