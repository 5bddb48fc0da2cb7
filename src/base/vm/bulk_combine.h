// What cp.reduce.async.bulk does to the bytes at its destination, and what tensor loads put where there is no
// tensor.
#pragma once
#include <cstddef>
#include <cstdint>

#include "src/base/ptx/form.h"
#include "src/base/ptx/type.h"

namespace assay::vm {

/// to[i] = to[i] combined with from[i], of elements of the type.
void combine_bytes(ptx::Combine, ptx::Type, std::byte* to, const std::byte* from, uint32_t bytes);
/// The canonical NaN of the type in every element.
void fill_with_nans(ptx::Type, std::byte* to, uint32_t bytes);
/// Whether the copy engine has such a reduction.
bool combines(ptx::Combine, ptx::Type);

}  // namespace assay::vm
