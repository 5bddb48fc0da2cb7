// Tensor maps that a kernel changes, field by field.
#pragma once
#include <vector>

#include "tools/hopper/programs.h"

namespace assay::hopper {

std::vector<NamedProgram> map_programs();

}  // namespace assay::hopper
