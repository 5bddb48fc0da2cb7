// The quadratic interpolation that makes the approximate instructions of sm_90. The leading fraction bits of
// an argument choose a segment, the 17 bits after them are the place x in it, and
//
//   2^40 value = 2^14 c0 + c1 x + 2 c2 square(x) + bias
//
// is summed exactly. Quadratic interpolation with a squarer of its own is how Oberman and Siu ("A
// High-Performance Area-Efficient Multifunction Interpolator", ARITH 2005) describe such a unit;
// coefficients, the squarer's columns, biases and where results are cut off were recovered from the results
// of an H200, and give every one of them (tests/data/approximate_digests.bin.gz).
#pragma once
#include <cstdint>

namespace assay::vm {

// Functions are static here, so that each set of lanes compiles its own.

/// A segment of a function; x runs over [0, 2^17).
struct Segment {
  int32_t c0;  ///< value at x = 0, in 2^-26
  int32_t c1;  ///< slope, in 2^-23 per segment
  int32_t c2;  ///< curvature, in 2^-24 per segment squared
};

extern const Segment reciprocal_segments[128];         ///< 1/m, m in [1, 2)
extern const Segment inverse_root_segments[128];       ///< 1/sqrt(m), m in [1, 2), then [2, 4)
extern const Segment root_segments[128];               ///< sqrt(m), m in [1, 2), then [2, 4)
extern const Segment exponential_segments[64];         ///< 2^f / 2, f in [0, 1)
extern const Segment logarithm_segments[64];           ///< 1 + log2(m), m in [1, 2)
extern const Segment sine_segments[64];                ///< sin(pi f / 2), f in [0, 1)
extern const Segment hyperbolic_tangent_segments[51];  ///< tanh(m), m in [2^-8, 8), by binades

/// Added to the sum, in 2^-40: it centres what the squarer leaves out and rounds the results.
inline constexpr int32_t reciprocal_bias = 4047, inverse_root_bias = 16383, root_bias = 32767,
                         exponential_bias = 12229, logarithm_bias = 3348;

/// x^2 / 2^19 of the partial products that the squarer keeps: with x = sum of b_k 2^k, the products
/// 2 b_k b_l 2^(k+l), k < l, and b_k 2^(2k) of weight 2^19 and more. x is split into h = x >> 9 and
/// l = x & 511: of l^2 nothing is left, of h^2 all but its lowest bit.
static constexpr uint32_t truncated_square(uint32_t x) {
  const uint32_t h = x >> 9, l = x & 511;
  uint32_t sum = (h * h) >> 1;
  // No loop, for the compiler to make vectors of it.
  sum += ((0u - ((h >> 1) & 1)) & (l >> 8)) + ((0u - ((h >> 2) & 1)) & (l >> 7));
  sum += ((0u - ((h >> 3) & 1)) & (l >> 6)) + ((0u - ((h >> 4) & 1)) & (l >> 5));
  sum += ((0u - ((h >> 5) & 1)) & (l >> 4)) + ((0u - ((h >> 6) & 1)) & (l >> 3));
  return sum + ((0u - ((h >> 7) & 1)) & (l >> 2));
}

/// 2^40 times the value at x in [0, 2^17).
static constexpr int64_t interpolate(const Segment& s, uint32_t x, int32_t bias = 0) {
  return int64_t{s.c0} * 16384 + int64_t{s.c1} * x + int64_t{s.c2} * 2 * truncated_square(x) + bias;
}

}  // namespace assay::vm
