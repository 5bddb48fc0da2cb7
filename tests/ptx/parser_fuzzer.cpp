// libFuzzer over the front end (preset `fuzzer`): half of the mutations are libFuzzer's own, half exchange
// tokens of PTX.
//   build/fuzzer/tests/ptx/parser_fuzzer -dict=build/fuzzer/tests/ptx/tokens.dict CORPUS
//   tests/ptx/fuzz_corpus
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

#include "tests/ptx/front_end.h"
#include "tests/ptx/token_mutation.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::ptx::front_end({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937_64 random(seed);
  if (random() % 2) return LLVMFuzzerMutate(data, size, max_size);
  const std::string made = assay::ptx::mutate_tokens({reinterpret_cast<const char*>(data), size},
                                                     1 + static_cast<int>(random() % 4), random);
  if (made.empty() || made.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, made.data(), made.size());
  return made.size();
}
