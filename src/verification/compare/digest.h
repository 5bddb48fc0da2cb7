// One number for the bits of a run's outputs, so that a run recorded on a GPU can be checked anywhere.
#pragma once
#include <cstdint>

#include "src/base/tensor/tensor.h"

namespace assay {

/// 64-bit FNV-1a (Fowler, Noll, Vo) over names, shapes and element bits in order of name. All NaN of a format
/// count as one; every other bit counts.
uint64_t digest(const TensorMap& outputs);

}  // namespace assay
