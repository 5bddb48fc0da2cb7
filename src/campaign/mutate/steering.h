// Does an instruction only decide which way is taken, and by sizes alone?
#pragma once
#include <cstdint>
#include <set>

#include "src/base/ptx/program.h"
#include "src/campaign/mutate/parameter_roles.h"
#include "src/campaign/mutate/value_range.h"

namespace assay {

/// A branch, a comparison or predicate logic. True where all that its result reaches are guards, and these
/// follow from parameters, thread and block indices and tables: values of tensors have no part in them.
bool only_steers(const ptx::Function&, const ValueRanges&, int32_t instruction, const ParameterRoles&);

}  // namespace assay
