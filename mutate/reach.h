// Which instructions a run executes.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/plan/plan.h"
#include "src/vm/machine.h"

namespace assay {

struct Reach {
  /// By module name and function: 1 for each instruction that some warp came to, guarded or not.
  std::map<std::pair<std::string, int32_t>, std::vector<uint8_t>> executed;
  uint64_t longest_warp = 0;  ///< most instructions that one warp executed

  bool has(const std::string& module, int32_t function, int32_t instruction) const;
};

/// Runs the plan once. A trap ends it; what was reached until then is kept.
Reach reach_of(const Plan&, const TensorMap& inputs, const vm::MachineOptions&);

}  // namespace assay
