// What can run a second time with the same results: for code aside that goes through a stretch again.
#pragma once
#include <cstdint>
#include <set>

#include "src/base/ptx/program.h"
#include "src/base/vm/signature.h"

namespace assay::watch {

/// A stretch of a basic block that grows by an instruction at a time. It reads and writes registers, and
/// reads shared memory, parameters and constants, which nothing in it changes; what it begins with stays as
/// it is.
class RepeatableStretch {
 public:
  /// Whether the next instruction of the text can belong to it; if so it does.
  bool take(const ptx::Instruction&, const vm::TextSignature&);
  /// Registers that it begins with: they must hold their values until its end.
  const std::set<int32_t>& begins_with() const { return begins_with_; }

 private:
  std::set<int32_t> begins_with_, written_;
};

}  // namespace assay::watch
