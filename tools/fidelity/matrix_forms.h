// Programs for tensor-core instructions and for the 8x8 matrices that feed them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tools/fidelity/form.h"

namespace assay::fidelity {

/// The program of an {l,st,mov}matrix, mma, wmma.mma or wgmma.mma_async form; nothing for any other name.
std::optional<Form> matrix_form(const std::string& name);
/// One wgmma shape with every swizzle, both orders of A and B, A in shared memory and in registers, and all
/// signs: names are "FORM [how]".
std::vector<Form> wgmma_variants();

}  // namespace assay::fidelity
