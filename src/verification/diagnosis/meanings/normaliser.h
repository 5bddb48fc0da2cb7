// Meanings of a normaliser: o_t = n_t / d_t with a divisor of other tokens than the numerator.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/verification/diagnosis/meaning.h"

namespace assay {

/// The divisor sums the keys of the token's own chunk only; empty where the operator has no normaliser.
std::vector<Variant> divisor_of_own_chunk(const FailingRun&);
/// The divisor sums the keys up to the token before.
std::vector<Variant> divisor_without_own_token(const FailingRun&);

/// Parts of the gradients of q and k that go through the divisor, of the token itself or of all: dd_t z_t and
/// Z_t.
struct DivisorPart {
  std::string text;
  Prediction part;  ///< of dq or dk, nothing else
};
/// `chunk`: of dk, sums end with the token's chunk of so many.
std::vector<DivisorPart> divisor_gradients(const FailingRun&, bool own, int64_t chunk = int64_t{1} << 40);
/// The gradient of k through the divisor ends with each chunk.
std::vector<Variant> divisor_gradient_of_own_chunk(const FailingRun&);
/// A token's own part is missing from the gradient of q, or k, through the divisor.
std::vector<Variant> divisor_gradient_without_own_token(const FailingRun&);

}  // namespace assay
