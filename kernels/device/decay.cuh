// Exponentials of log decays. Decays are summed in units of log2 (g times log2 e, rounded once), all terms <=
// 0 and nothing ever subtracted, so that every argument below is <= 0 and has relative error at most (depth
// of the sum + 2) u.
#pragma once

#include "instruction.cuh"

constexpr float log2_e = 0x1.715476p+0f;

// 2^y - 1 for -1/2 <= y <= 0: relative error <= 4 u. Seven terms of sum (y ln 2)^n / n!; the first one left
// out is 2^-27 of the sum; Horner's roundings are u at the last step, u |y| ln2 / 2 at the one before, and so
// on, over a sum >= 0.84, then u for the product with y.
__device__ __forceinline__ float power_of_two_minus_one(float y) {
  float sum = 0x1.ffcbfcp-17f;           // ln2^7 / 7!
  sum = fused(sum, y, 0x1.430912p-13f);  // ln2^6 / 6!
  sum = fused(sum, y, 0x1.5d87fep-10f);  // ln2^5 / 5!
  sum = fused(sum, y, 0x1.3b2ab6p-7f);   // ln2^4 / 4!
  sum = fused(sum, y, 0x1.c6b08ep-5f);   // ln2^3 / 3!
  sum = fused(sum, y, 0x1.ebfbep-3f);    // ln2^2 / 2!
  sum = fused(sum, y, 0x1.62e43p-1f);    // ln2
  return sum * y;
}

// How a chunk decays the state: S <- keep S + (factor S + dS). Where the decay is weak, keep = 1 and factor =
// e^L - 1, so that a chunk costs one rounding of the state and an error proportional to |L|; where it is
// strong, keep = 0 and factor = e^L.
struct StateDecay {
  float keep, factor;
  __device__ static StateDecay of(float total) {
    const bool weak = total > -0.5f;
    const float near = power_of_two_minus_one(weak ? total : 0.0f), far = power_of_two(total);
    return {weak ? 1.0f : 0.0f, weak ? near : far};
  }
};

// e^g from g in log2 units. Weak decays as 1 + (e^g - 1): one rounding of a number below 1 (2^-25), the rest
// of the error is proportional to |g|; strong ones by ex2, whose 2^-22 is at most 12 u per nat there.
__device__ __forceinline__ float decay_factor(float y) {
  const bool weak = y > -0.5f;
  const float near = 1.0f + power_of_two_minus_one(weak ? y : 0.0f), far = power_of_two(y);
  return weak ? near : far;
}
