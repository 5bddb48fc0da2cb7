// A stranger's kernel: PTX and a JSON plan (kernels/plan.schema.json) become a Kernel like our own, without
// rebuilding.
#pragma once
#include <string>

#include "kernels/kernel.h"

namespace assay {

/// `ptx_path`: the PTX file, or the folder of the files that the plan's launches name (empty: the plan's
/// folder). Reads all files and checks one against the other: every entry a launch can name for the declared
/// formats exists and takes as many parameters, of the sizes and classes, as the launch gives. Throws
/// BadInput naming file and place. Kernel::plan throws BadInput where an expression has no legal value for
/// the case (a block of 2000 threads).
Kernel load_foreign_kernel(const std::string& ptx_path, const std::string& plan_path);

}  // namespace assay
