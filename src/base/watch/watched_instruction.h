// What an instruction is to the watch: whether NaN or infinities can be born in it, of which operands, and
// which of these are non-finite only if its result is.
#pragma once
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/matrix_form.h"
#include "src/base/watch/value_ranges.h"

namespace assay::watch {

struct FloatOperand {
  const ptx::Operand* operand = nullptr;  ///< a register or a literal
  ptx::Type type = ptx::Type::none;
  /// Where it is not finite, some result is not either: of a tensor-core product perhaps another lane's.
  bool reaches_result = false;
  /// The same but for -infinity, of which the result is 0.
  bool reaches_but_negative = false;
};

struct WatchedInstruction {
  enum class Kind : uint8_t {
    none,     ///< nothing is born in it
    passes,   ///< nothing either, and its result is finite only if its first source is
    refused,  ///< floats are computed, and the watch does not know it
    scalar,   ///< lane by lane; of packed types half by half
    product,  ///< a tensor-core product of a warp: sources A, B, C
    state,    ///< nothing is born in it, but it writes registers that products add to in place
    sums      ///< wgmma: sources A where it is in registers; its sums can be read after a wait
  } kind = Kind::none;
  std::vector<FloatOperand> results, sources;
  size_t a_count = 0, b_count = 0;  ///< of a product's sources; C follows
  vm::Element a_element{}, b_element{};
  bool in_place = false;  ///< C is D
  bool crosses = false;   ///< cvt d, high, low: half h of the result comes of source 1 - h
};

WatchedInstruction watched(const ptx::Instruction&, const ValueRanges&);

}  // namespace assay::watch
