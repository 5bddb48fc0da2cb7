// The corpus as one translation unit.
#include "tests/ptx/corpus/program.h"
#ifndef __CUDACC__
namespace assay::corpus {
#endif
#include "tests/ptx/corpus/control.cu"
#include "tests/ptx/corpus/double.cu"
#include "tests/ptx/corpus/halves.cu"
#include "tests/ptx/corpus/integers.cu"
#include "tests/ptx/corpus/single.cu"
#include "tests/ptx/corpus/warps.cu"
#ifndef __CUDACC__
}  // namespace assay::corpus
#endif
