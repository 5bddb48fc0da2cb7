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
/// The NaN that the copy engine puts where there is no tensor: 0x7ff7 in every 16 bits, whatever the type
/// (measured on an H200).
void fill_with_nans(std::byte* to, uint32_t bytes);
/// Floats rounded to tf32, to nearest even; NaN becomes 0x7fffe000 (measured on an H200).
void narrow_to_tf32(std::byte* to, const std::byte* from, uint32_t bytes);
/// Whether the copy engine has such a reduction.
bool combines(ptx::Combine, ptx::Type);

}  // namespace assay::vm
