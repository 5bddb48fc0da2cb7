// Does a changed instruction ever give another result?
#pragma once
#include <optional>
#include <string>

#include "src/plan/plan.h"
#include "src/ptx/mutation.h"
#include "src/vm/machine.h"

namespace assay {

/// Both plans are run; true where the results that the instruction leaves in registers differ somewhere, or
/// it runs another number of times. Nothing where it writes no register.
std::optional<bool> result_changes(const Plan& original, const Plan& changed, const TensorMap& inputs,
                                   const vm::MachineOptions&, const std::string& module,
                                   const ptx::Mutation&);

}  // namespace assay
