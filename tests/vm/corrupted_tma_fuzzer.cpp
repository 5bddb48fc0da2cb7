// libFuzzer over tensor maps, and over the numbers of programs that copy by them (preset `fuzzer`):
//   build/fuzzer/tests/vm/corrupted_tma_fuzzer CORPUS
#include <cstddef>
#include <cstdint>

#include "tests/vm/corrupted_tma.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::hopper::fate_of_corrupted({data, size});
  return 0;
}
