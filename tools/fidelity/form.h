// One instruction form to compare between two engines: how its operands are drawn and what its program does
// with them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/vm/instruction_row.h"
#include "src/base/vm/matrix_form.h"

namespace assay::fidelity {

enum class Draw : uint8_t {
  crossed,  ///< an entry of the type's template table: all entries of all operands crossed, the rest random
  uniform,  ///< the same, one value for the whole warp
  theme,    ///< the warp chooses four neighbouring entries of the theme table, the lane one of them
  counter   ///< the index itself: every bit pattern of 16 or 32 bits
};

struct DrawnOperand {
  ptx::Type type;
  Draw draw = Draw::crossed;
  int group = 0;  ///< operands of a group share entry or theme; their random bits differ
  std::optional<vm::Element> packed = std::nullopt;  ///< formats that PTX registers lack: four to a word
};

/// Registers %a0, %a1, ... hold the operands, %d0, %d1, ... take the results. The body may also use %x0..%x3
/// (b32), %y0, %y1 (b64), %p0 (pred), %m0..%m31 (b32), %mw0..%mw7 (b64), %lane, %step (b32, one value in the
/// group), %cell (b32: 16 bytes of shared memory of this thread), %warpcells (b32: the warp's 512 bytes),
/// %matrices (b32: `matrix_bytes` of shared memory of the block, from a multiple of 1024) and %memory (b64:
/// 16 bytes of global memory of this thread).
struct Form {
  std::string name;
  vm::Status status = vm::Status::exact();
  std::vector<DrawnOperand> operands;
  std::vector<ptx::Type> results;
  std::string body;
  uint32_t group = 32;  ///< threads that execute it together: a warp, or a warpgroup of 128
  int matrix_bytes = 0;
  int64_t indices = 0;  ///< how many indices a whole comparison has; results are as many times results.size()
};

/// Every form of the instruction table that is a function of registers, at 2^log2_indices indices (fewer
/// where that is every input). `others`, if given, receives the forms that are none.
std::vector<Form> forms(int log2_indices, std::vector<std::string>* others = nullptr);
/// Forms of one float operand on all 2^32 inputs: the approximate ones first.
std::vector<Form> exhaustive_forms();

}  // namespace assay::fidelity
