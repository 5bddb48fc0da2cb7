// Registers whose contents at a block's start may matter: some lane may read them before it has written them,
// or another lane may read them. Of all others a block's own instructions decide.
#pragma once
#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {

/// Of a whole Code, its signatures included; ascending.
std::vector<SlotRange> unsure_registers(const Code&);

}  // namespace assay::vm
