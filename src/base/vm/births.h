// run_births: where special values are born: NaN, infinities, subnormal numbers and divisions by zero, by
// source line, whether or not they reach an output.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/vm/machine.h"

namespace assay {

/// What one source line and instruction made out of operands that were nothing of the kind.
struct LineBirths {
  SourceLocation where;
  std::string instruction;         ///< opcode
  uint64_t nans = 0;               ///< NaN from operands none of which is NaN
  uint64_t infinities = 0;         ///< infinity from finite operands
  uint64_t subnormals = 0;         ///< subnormal results from operands none of which is subnormal
  uint64_t divisions_by_zero = 0;  ///< finite, not zero, by an exact 0; logarithms of 0; in `infinities` too
  std::array<uint32_t, 3> block{}, thread{};  ///< of the first of the worst kind: NaN, then infinity
  std::string example;                        ///< "-3.5, 0 -> -inf"; of a tensor core's sums the result alone
};
template <typename Io>
void fields(Io& io, LineBirths& x) {
  io.type("births", "special values that a source line made out of others");
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(nans);
  ASSAY_FIELD(infinities);
  ASSAY_FIELD(subnormals);
  ASSAY_FIELD(divisions_by_zero);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(example);
}

}  // namespace assay

namespace assay::vm {

/// By source line and opcode, in the order of the program's text, entries in the order of launches. A run
/// that traps tells what it made until then. `locate`: as ShadowOptions::locate. Throws BadInput as run().
std::vector<LineBirths> run_births(
    const Program&, const TensorMap& inputs, const MachineOptions&,
    const std::function<SourceLocation(const ptx::Module&, int32_t function, int32_t instruction)>& locate =
        nullptr);

}  // namespace assay::vm
