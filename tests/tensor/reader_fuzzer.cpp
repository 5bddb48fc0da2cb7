// libFuzzer over the readers of tensor files, one program each (preset `fuzzer`):
//   build/fuzzer/tests/tensor/npy_fuzzer CORPUS tests/tensor/fuzz_corpus/npy
#include <cstddef>
#include <cstdint>

#include "tests/tensor/reader_contract.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const assay::Reader& reader : assay::readers())
    if (reader.name == ASSAY_READER) assay::read_any(reader, {reinterpret_cast<const char*>(data), size});
  return 0;
}
