// Registers whose values reach memory, a barrier, a branch or an address.
#pragma once
#include <cstdint>
#include <vector>

#include "src/campaign/mutate/value_range.h"

namespace assay {

/// By marking backwards, wherever a register is written. Of a tensor core's sum each element takes its own
/// addend alone, and all of the factors.
class NeededRegisters {
 public:
  explicit NeededRegisters(const ValueRanges&);
  /// Of another instruction in the place of one of them.
  NeededRegisters(const ValueRanges&, int32_t at, const ptx::Instruction& instead);

  bool has(int32_t reg) const { return needed_[static_cast<size_t>(reg)]; }

 private:
  void mark(const ValueRanges&, int32_t at, const ptx::Instruction* instead);
  std::vector<bool> needed_;
};

/// Does more than write registers: stores, synchronises, decides where the run goes.
bool acts(const ptx::Instruction&);

}  // namespace assay
