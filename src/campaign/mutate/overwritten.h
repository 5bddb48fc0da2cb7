// Results that nothing reads, whichever way is taken.
#pragma once
#include <cstdint>

#include "src/campaign/mutate/value_range.h"

namespace assay {

/// Is what an unguarded instruction writes to registers, and what is made of it there, written again before
/// it is stored, branched on, an address or another lane's? On every way; a comparison of values that stay
/// lets through the same ways wherever it guards a branch.
bool is_overwritten(ValueRanges&, int32_t instruction);

}  // namespace assay
