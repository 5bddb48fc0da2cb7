// Where a changed result stops making a difference.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/mutation/mutation.h"
#include "src/base/program/program.h"
#include "src/base/vm/machine.h"

namespace assay {

/// Instructions of the mutated function that read what differs between the two runs and do the same all the
/// same, and stores of what differs, in the order of the text. A store ends a difference where no output
/// shows it.
std::vector<int32_t> difference_ends(const Program& original, const Program& changed, const TensorMap& inputs,
                                     const vm::MachineOptions&, const std::string& module,
                                     const ptx::Function&, const ptx::Mutation&);

/// Why a difference can end at such an instruction: "the other one is chosen".
std::string_view why_it_ends(const ptx::Instruction&);

/// Branches that were come to and never taken, or never left, toward an instruction that no run came to: the
/// nearest on each way to it. `came_to`: of every instruction of the function.
std::vector<int32_t> closed_branches(const ptx::Function&, const std::vector<bool>& came_to,
                                     int32_t instruction);

}  // namespace assay
