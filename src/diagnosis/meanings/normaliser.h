// Meanings of a normaliser: o_t = n_t / d_t with a divisor of other tokens than the numerator.
#pragma once
#include <string>
#include <vector>

#include "src/diagnosis/meaning.h"

namespace assay {

/// The divisor sums the keys of the token's own chunk only; empty where the operator has no normaliser.
std::vector<Variant> divisor_of_own_chunk(const FailingRun&);
/// The divisor sums the keys up to the token before.
std::vector<Variant> divisor_without_own_token(const FailingRun&);

/// Parts of the gradients of q and k that go through the divisor, of the token itself or of all: dd_t z_t and Z_t.
struct DivisorPart {
  std::string text;
  Prediction part;  ///< of dq or dk, nothing else
};
std::vector<DivisorPart> divisor_gradients(const FailingRun&, bool own);
/// A token's own part is missing from the gradient of q, or k, through the divisor.
std::vector<Variant> divisor_gradient_without_own_token(const FailingRun&);

}  // namespace assay
