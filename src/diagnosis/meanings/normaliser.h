// Meanings of a normaliser: o_t = n_t / d_t with a divisor of other tokens than the numerator.
#pragma once
#include <vector>

#include "src/diagnosis/meaning.h"

namespace assay {

/// The divisor sums the keys of the token's own chunk only; empty where the operator has no normaliser.
std::vector<Variant> divisor_of_own_chunk(const FailingRun&);
/// The divisor sums the keys up to the token before.
std::vector<Variant> divisor_without_own_token(const FailingRun&);

}  // namespace assay
