// Static arguments that a mutant computes what its kernel does, from the program's text alone.
#pragma once
#include <string>

#include "src/base/mutation/mutation.h"
#include "src/campaign/mutate/parameter_roles.h"

namespace assay {

/// One line, or empty where no argument is found. `changed`: the module with the mutation applied.
std::string why_equivalent(const ptx::Module& original, const ptx::Module& changed, const ptx::Mutation&,
                           const ParameterRoles&);

}  // namespace assay
