// From everything a run showed to one verdict and one cause.
#pragma once
#include "src/result/verification.h"

namespace assay {

/// Sets `verdict` and `cause` from what the other fields hold. `pass` leaves the cause empty; a finding's
/// cause is its worst fault: "trap/out-of-bounds/kernels/gla/chunk.cu:142",
/// "nonfinite/o/exp-overflow/kernels/gla/chunk.cu:142" (origin and place only where one was found),
/// "wrong-class/o", "violation/o", "formula/o", "check/race/kernels/gla/chunk.cu:142",
/// "property/same-bits-twice", "property/exponents-nonpositive", "expected/o" where the run shows no fault
/// and the inputs' file disagrees with the reference. Shrinking keeps it.
void decide(Verification&);

/// Of a kernel that promises none: a finding for each exponential that saw an argument above 0, before those
/// of other properties: "exponents-nonpositive: ex2.approx.ftz.f32 at FILE:LINE saw 3.5".
void check_exponents(Verification&);

}  // namespace assay
