// Static arguments that a mutant computes what its kernel does, from the program's text alone.
#pragma once
#include <string>

#include "src/ptx/mutation.h"

namespace assay {

/// One line, or empty where there is no argument.
std::string why_equivalent(const ptx::Module&, const ptx::Mutation&, const std::string& replacement);

}  // namespace assay
