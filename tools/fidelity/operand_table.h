// Templates for drawn operands: an operand is (random & keep) | set.
#pragma once
#include <array>
#include <cstdint>

#include "src/base/ptx/program.h"
#include "src/base/vm/matrix_form.h"

namespace assay::fidelity {

struct Template {
  uint64_t keep, set;
};
inline constexpr int table_entries = 64;
using OperandTable = std::array<Template, table_entries>;

/// Special values, boundaries, exponent windows, ties and raw bit patterns of a type.
OperandTable crossed_table(ptx::Type);
/// Sixteen themes of four entries for tensor-core operands: narrow exponent windows, cancelling powers of
/// two, subnormals, overflow, specials among ordinary values.
OperandTable theme_table(ptx::Type);
/// The same for four elements of 8 bits in a word.
OperandTable theme_table(vm::Element);

}  // namespace assay::fidelity
