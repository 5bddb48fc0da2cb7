// Does a changed instruction ever give another result, and the run another way?
#pragma once
#include <optional>
#include <string>

#include "src/base/mutation/mutation.h"
#include "src/base/program/program.h"
#include "src/base/vm/machine.h"

namespace assay {

/// Both plans are run; true where the results that the instruction leaves in registers differ somewhere, or
/// it runs another number of times; of a branch, where other lanes take it. Nothing where it writes no
/// register and does not branch. Of several instructions in its place the last one's are compared.
std::optional<bool> result_changes(const Program& original, const Program& changed, const TensorMap& inputs,
                                   const vm::MachineOptions&, const std::string& module,
                                   const ptx::Mutation&);

/// Are other instructions executed, or by other threads, than in the original? Those of the changed line are
/// not counted.
bool path_changes(const Program& original, const Program& changed, const TensorMap& inputs,
                  const vm::MachineOptions&, const std::string& module, int32_t ptx_line);

}  // namespace assay
