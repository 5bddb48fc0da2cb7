// Static arguments that a mutant computes what its kernel does, from the program's text alone.
#pragma once
#include <set>
#include <string>

#include "src/ptx/mutation.h"

namespace assay {

/// One line, or empty where no argument is found. `changed`: the module with the mutation applied. `sizes`:
/// the function's parameters, by position, that are sizes: neither negative nor above 2^40.
std::string why_equivalent(const ptx::Module& original, const ptx::Module& changed, const ptx::Mutation&,
                           const std::set<int32_t>& sizes);

}  // namespace assay
