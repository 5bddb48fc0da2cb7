// An op's text: the instruction that it was decoded from, as written.
#pragma once
#include <string>

#include "src/base/program/outcome.h"
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
/// File, line and PTX line of an instruction's own text.
inline SourceLocation written_at(const ptx::Module& module, const ptx::Instruction& instruction) {
  SourceLocation at;
  at.ptx_line = instruction.ptx_line;
  if (instruction.line < 0) return at;
  const ptx::Line& line = module.lines[static_cast<size_t>(instruction.line)];
  if (line.file >= 0) at.file = module.files[static_cast<size_t>(line.file)];
  at.line = line.line;
  return at;
}
/// Empty of ops that the decoder made.
inline const std::string& opcode_of(const Code& code, const Op& op) {
  static const std::string none;
  const ptx::Instruction* const instruction = instruction_of(code, op);
  return instruction ? instruction->opcode : none;
}

}  // namespace assay::vm
