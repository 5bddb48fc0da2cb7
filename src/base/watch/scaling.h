// Stretches of products by few factors, as sums are rescaled, which are tested before they run: of each
// factor f the sum s of all |x| that it multiplies. Rounded to nearest, s is no smaller than any |x|, and
// s |f| no smaller than any |x f|: where it is finite, so is all that comes in and goes out, and nothing need
// be kept.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/watch/added_registers.h"
#include "src/base/watch/watched_instruction.h"

namespace assay::watch {

struct Scaling {
  int32_t end = 0;                             ///< behind its last instruction
  std::map<int32_t, std::vector<int32_t>> of;  ///< by factor: registers that it multiplies
};

/// Of one that begins with instruction `from`; no branch leads into it (`starts`). It begins and ends in the
/// function's own scope (`depth` 1), so that scopes within are whole; what it multiplies is known there (not
/// `scoped`, by register: named in inner scopes alone).
std::optional<Scaling> scaling_from(const ptx::Function&, const std::vector<WatchedInstruction>&,
                                    int32_t from, const std::vector<bool>& starts,
                                    const std::vector<int>& depth, const std::vector<bool>& scoped);

/// Writes the test; returns the predicate that something may not be finite.
std::string test_of_scaling(const Scaling&, const ptx::Function&, AddedRegisters&, Code&);

}  // namespace assay::watch
