// What every reader of tensor files promises of any bytes. The same for libFuzzer (reader_fuzzer.cpp) and for
// the replay of its corpus (fuzz_corpus_test.cpp).
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace assay {

struct Reader {
  std::string_view name;  ///< also of its folder in tests/tensor/fuzz_corpus
  void (*read)(std::string_view file);
};

/// Of .safetensors, .npy and .npz.
std::span<const Reader> readers();

/// "": the bytes are taken; else what was said of them. Throws std::logic_error where a tensor holds other
/// than what its shape says, or where what is said is not one line that begins with the file's name.
std::string read_any(const Reader&, std::string_view file);

}  // namespace assay
