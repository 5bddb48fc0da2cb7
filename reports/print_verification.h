// A verification on one screen.
#pragma once
#include "reports/console_chain.h"
#include "src/result/verification.h"

namespace assay {

/// Verdict, counts per output, the worst element, origin and diagnosis where there are some, the replay line.
/// Not for inputs out of domain: nothing was run.
/// `depth`: steps of a chain that are printed.
void print_verification(const Console&, const Verification&, size_t depth = kDefaultDepth);

}  // namespace assay
