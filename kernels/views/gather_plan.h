// Inputs that are views: every kernel takes any strides, because what it does not read in place is first
// copied row by row by a launch of its own (gather.cu). Dense inputs cost nothing. A kernel whose rows have
// their axes in another order (Kernel::orders) reads such copies, and what it writes is copied after it.
#pragma once
#include "kernels/kernel.h"

namespace assay {

/// The module of those launches; a plan that names one already, as a mutant's, keeps it.
inline constexpr const char* gather_module = "views/gather";

/// Kernel::plan for the layouts of the case: with Program::layouts, and for each view that the kernel does
/// not read in place a workspace "copy of q" and the launch that fills it.
Program program_with_views(const Kernel&, const ResolvedCase&, const TensorMap& inputs);

}  // namespace assay
