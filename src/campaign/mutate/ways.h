// The ways through a function: what can run right after what.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay {

class ValueRanges;

/// What can run right after an instruction. `runs`, `rests`: there are lanes for which it runs, and for which
/// its guard holds it back.
std::vector<int32_t> next_of(const ptx::Function&, int32_t at, bool runs, bool rests);

/// What can run right after each instruction; the function's length stands for its end.
std::vector<std::vector<int32_t>> successors_of(const ptx::Function&);
/// The other way round; last, what can be the last.
std::vector<std::vector<int32_t>> predecessors_of(const ptx::Function&);

/// Is there a way to it from the function's entry, where branches whose predicate is one and the same for all
/// values that it can have are taken always, or never?
bool is_come_to(const ptx::Function&, ValueRanges&, int32_t instruction);

}  // namespace assay
