// Clusters, bulk copies between blocks, and a whole product of matrices.
#pragma once
#include <vector>

#include "tools/hopper/programs.h"

namespace assay::hopper {

std::vector<NamedProgram> cluster_programs();

}  // namespace assay::hopper
