// Which instructions a run executes, and what its comparisons see.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/vm/machine.h"

namespace assay {

/// Bits of Reach::executed.
enum ReachBit : uint8_t {
  came_to = 1,       ///< some warp did, guarded or not
  saw_true = 2,      ///< a comparison held for some thread,
  saw_false = 4,     ///< or did not
  saw_less = 8,      ///< of integers: first operand below the second,
  saw_equal = 16,    ///< equal,
  saw_greater = 32,  ///< above
  saw_any_order = saw_less | saw_equal | saw_greater,
};

/// Of one function: how many bits `own` has that are new to `seen`; `seen` with them.
int64_t new_reach(const std::vector<uint8_t>& own, const std::vector<uint8_t>& seen);
int64_t add_reach(const std::vector<uint8_t>& own, std::vector<uint8_t>& seen);

struct Reach {
  /// By module name and function: ReachBits for each instruction.
  std::map<std::pair<std::string, int32_t>, std::vector<uint8_t>> executed;
  uint64_t longest_warp = 0;  ///< most instructions that one warp executed

  bool has(const std::string& module, int32_t function, int32_t instruction) const;
  /// Adds the other's bits; the number of those that are new here.
  int64_t add(const Reach& other);
};

/// A warp of a mutant may execute so many times what the program's longest one does in the same case,
constexpr uint64_t kLonger = 4;
/// and some more.
inline uint64_t most_of_a_mutant(const Reach& clean) {
  return kLonger * clean.longest_warp + 100'000;
}

/// Runs the plan once. A trap ends it; what was reached until then is kept.
Reach reach_of(const Program&, const TensorMap& inputs, const vm::MachineOptions&);

}  // namespace assay
