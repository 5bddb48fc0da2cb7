// Whether a launch gives an entry what it takes.
#pragma once
#include <string>

#include "src/base/program/program.h"
#include "src/base/ptx/program.h"

namespace assay {

/// Throws BadInput("<who>: argument 2 (scale) ...") where the number of arguments, the size of one, a float
/// for an integer or a relocation's place is not what the entry's parameters say. `who`: "test: launch of
/// add".
void require_arguments(const Launch&, const ptx::Function& entry, const std::string& who);

}  // namespace assay
