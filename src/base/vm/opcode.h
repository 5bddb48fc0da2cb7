// The opcode of an op, as written.
#pragma once
#include <string>

#include "src/base/vm/code.h"

namespace assay::vm {

/// Empty of ops that the decoder made.
inline const std::string& opcode_of(const Code& code, const Op& op) {
  static const std::string none;
  if (op.function < 0 || op.instruction < 0) return none;
  return code.module->functions[static_cast<size_t>(op.function)]
      .body[static_cast<size_t>(op.instruction)]
      .opcode;
}

}  // namespace assay::vm
