// Results that nothing reads, whichever way is taken.
#pragma once
#include <cstdint>

#include "src/campaign/mutate/value_range.h"

namespace assay {

/// Is what an unguarded instruction writes to registers written again before anything reads it? On every way;
/// a comparison of values that stay lets through the same ways wherever it guards a branch.
bool is_overwritten(ValueRanges&, int32_t instruction);

}  // namespace assay
