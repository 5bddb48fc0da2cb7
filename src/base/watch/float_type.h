// Floats as they lie in registers: what the watch reads and prints of them.
#pragma once
#include <cstdint>
#include <string>

#include "src/base/ptx/program.h"

namespace assay::watch {

/// f16 of f16x2; any other type is its own.
ptx::Type element_of(ptx::Type);
/// 16, 32 or 64, of an element.
int bits_of(ptx::Type);
/// Of element `half` in a register's bits.
double value_of(ptx::Type, uint64_t bits, int half = 0);
/// The largest finite number.
double largest_of(ptx::Type);
/// A literal operand as an instruction on that type takes it: in both halves of a packed type what was
/// written.
uint64_t literal_bits(const ptx::Operand&, ptx::Type);

}  // namespace assay::watch
