// What roundings do to a softmax of sampled numbers and to its gradient (rounding_noise.h), token by token:
//   p = softmax(y),  dy = p (dp - p . dp)
// Either is not linear: p and dy of a sample are those of its y and dp, and what that is beyond first order
// counts as a source of long reach. Where a token's y is noisier than kNoisyLogits, squared, in the mean by
// p (1 - p) which is what dy is made of also where one slot has nearly all the weight, samples say too little
// of the tail: it and all that it enters is not judged. A p near 1 is rounded towards 1 or to the number
// before it: as a weight near 1 of a scaled operand is.
//
// What is left of the declared numbers moves a weight p_m by at most
//   p_m ((1 - p_m) eta_m + sum_{j != m} p_j eta_j + divide),  eta = what y is off by + per nat,
// dy likewise through its factors.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/sampled_chunk.h"

namespace assay {

inline constexpr float kNoisyLogits = 0x1p-4f;

/// Tokens x slots that the operator makes itself.
struct SampledWeights {
  std::vector<float> value;
  std::vector<float> moved;      ///< squares of what else each may be off by; infinite: not judged
  std::vector<Lanes> near, far;  ///< as of SampledRows

  explicit SampledWeights(size_t size) : value(size), moved(size), near(size), far(size) {}
};

struct SoftmaxErrors {
  float weight = 0, gradient = 0;  ///< storing of p, and of dy: multiples of a uniform draw from [-1, 1]
  double per_nat = 0;              ///< of an exponent, below the largest y
  double divide = 0, inner = 0;    ///< relative, of p; of dp - p . dp and of dy
};

SampledWeights sampled_softmax(const SampledChunk&, int64_t slots, const SoftmaxErrors&,
                               const SampledWeights& y);
/// dy of p and dp.
SampledWeights sampled_softmax_gradient(const SampledChunk&, int64_t slots, const SoftmaxErrors&,
                                        const SampledWeights& p, const SampledWeights& dp);

}  // namespace assay
