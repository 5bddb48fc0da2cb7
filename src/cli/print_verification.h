// A verification on one screen.
#pragma once
#include "src/cli/console.h"
#include "src/cli/print_slice.h"
#include "src/result/origin.h"
#include "src/result/verification.h"

namespace assay::cli {

/// Verdict, counts per output, the worst element, origin and diagnosis where there are some, the replay line.
/// Not for inputs out of domain: nothing was run.
/// `depth`: steps of a chain that are printed.
void print_verification(const Console&, const Verification&, size_t depth = kDefaultDepth);
/// Where a non-finite value was born: place, instruction, operands, inputs, chain.
void print_origin(const Console&, const Origin&, size_t depth = kDefaultDepth);

}  // namespace assay::cli
