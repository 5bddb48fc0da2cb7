// Does an instruction only decide which way is taken, and by sizes alone?
#pragma once
#include <cstdint>
#include <set>

#include "mutate/parameter_roles.h"
#include "mutate/value_range.h"
#include "src/ptx/program.h"

namespace assay {

/// A branch, a comparison or predicate logic. True where all that its result reaches are guards, and these follow from parameters, thread
/// and block indices and tables: values of tensors have no part in them.
bool only_steers(const ptx::Function&, const ValueRanges&, int32_t instruction, const ParameterRoles&);

}  // namespace assay
