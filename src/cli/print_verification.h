// A verification on one screen.
#pragma once
#include "reports/result.h"
#include "src/cli/console.h"

namespace assay::cli {

/// Verdict, counts per output, the worst element, origin and diagnosis where there are some, the replay line.
/// Not for inputs out of domain: nothing was run.
void print_verification(const Console&, const Verification&);
/// Where a non-finite value was born: place, instruction, operands, inputs, chain.
void print_origin(const Console&, const Origin&);

}  // namespace assay::cli
