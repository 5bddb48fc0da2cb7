// Registers that loops count up, read off a function's text.
#pragma once
#include <cstdint>
#include <optional>

#include "src/campaign/mutate/value_range.h"

namespace assay {

/// What a register can hold that starts somewhere and has literals added to it, each time only after a
/// comparison on the way said that it is below a bound: so that it never wraps. Nothing where it is no such.
std::optional<ValueRange> counted_range(ValueRanges&, int32_t reg);

}  // namespace assay
