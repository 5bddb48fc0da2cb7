// Does a changed literal touch only bits that are dropped before anything depends on them?
#pragma once
#include "src/campaign/mutate/value_range.h"

namespace assay {

/// `after` is the instruction at `instruction` with another literal in place of one. True where the results
/// differ in no bit, or in such that every use of them shifts or masks away.
bool changes_dropped_bits_only(ValueRanges&, int32_t instruction, const ptx::Instruction& after);

}  // namespace assay
