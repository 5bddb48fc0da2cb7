// What a division by zero divided by.
#pragma once
#include "src/verification/diagnosis/diagnose.h"

namespace assay {

/// Is the divisor made of log decays alone: a decay that underflowed?
bool divides_by_decay(const Evidence&);
/// Is it a sum of exponentials of something else, all of which underflowed?
bool divides_by_vanished_exponentials(const Evidence&);

}  // namespace assay
