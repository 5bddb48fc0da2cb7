// Reads the recorded word files of tests/data (gzip of little-endian 32-bit words).
#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::vm {

inline std::vector<uint32_t> read_words(const std::string& name) {
  const std::string path = std::string(ASSAY_SOURCE_DIR) + "/tests/data/" + name;
  std::vector<uint32_t> words;
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (!file) return words;
  uint32_t chunk[4096];
  for (int n; (n = gzread(file, chunk, sizeof chunk)) > 0;) words.insert(words.end(), chunk, chunk + n / 4);
  gzclose(file);
  return words;
}

}  // namespace assay::vm
