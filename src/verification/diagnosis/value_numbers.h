// Which instances of a slice are the same value, computed or read several times: by several lanes that
// share a cell, or again and again.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/vm/value_slice.h"

namespace assay {

/// By instance a number: those of one instruction whose operands are the same values have one. What is made
/// of literals alone has one of its own: each such instance may have to be another.
std::vector<uint32_t> value_numbers(const vm::ValueSlice&);

}  // namespace assay
