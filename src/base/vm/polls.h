// Loads that wait: a loop over a load until another thread has stored what it looks for.
#pragma once
#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {

/// By op of the code: a .volatile load in a loop whose value, through registers, decides a branch of that
/// loop.
std::vector<bool> polls_of(const Code&);

}  // namespace assay::vm
