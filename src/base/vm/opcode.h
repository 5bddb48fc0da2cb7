// An op's text: the instruction that it was decoded from, as written.
#pragma once
#include <string>

#include "src/base/vm/code.h"

namespace assay::vm {

/// The function whose body an op stands in and its instruction there; null of ops that the decoder made.
inline const ptx::Function* function_of(const Code& code, const Op& op) {
  return op.function < 0 ? nullptr : &code.module->functions[static_cast<size_t>(op.function)];
}
inline const ptx::Instruction* instruction_of(const Code& code, const Op& op) {
  if (op.function < 0 || op.instruction < 0) return nullptr;
  return &function_of(code, op)->body[static_cast<size_t>(op.instruction)];
}
/// Empty of those.
inline const std::string& opcode_of(const Code& code, const Op& op) {
  static const std::string none;
  const ptx::Instruction* const instruction = instruction_of(code, op);
  return instruction ? instruction->opcode : none;
}

}  // namespace assay::vm
