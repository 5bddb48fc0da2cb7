// The caller's arrays: where their storages lie, and their elements as tensors.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "include/assay_engine.h"
#include "src/base/tensor/tensor.h"
#include "src/base/tensor/tensor_layout.h"

namespace assay::binding {

/// The arrays as this header has them, whatever the caller's had. Throws BadInput for what is none: a format
/// or a rank that there is not, elements outside the storage.
std::vector<assay_array> read_arrays(const assay_array* first, uint64_t count);

/// The shape, without data: axes named, or counted.
Tensor shape_of(const assay_array&);
/// A copy of its elements, row by row.
Tensor elements_of(const assay_array&);
/// Where its elements lie in its storage; nothing where they lie row by row and fill it.
std::optional<TensorLayout> layout_of(const assay_array&);
/// The elements lie row by row and fill the storage.
bool fills_storage(const assay_array&);

}  // namespace assay::binding
