// Exact single-precision and half-precision arithmetic on the host, in every rounding mode. Operations are
// carried out in double, rounded to odd, and then rounded once to the target: 53 bits to odd followed by p <=
// 51 bits in any mode is the correctly rounded result (Boldo and Melquiond, "Emulation of a FMA and correctly
// rounded sums", IEEE ToC 2008).
#pragma once
#include <cstdint>

#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {

enum class Round { nearest, zero, down, up };

inline constexpr uint32_t canonical_nan32 = 0x7fffffffu;  // the NaN that the hardware returns
inline constexpr uint32_t canonical_nan16 = 0x7fffu;

inline uint32_t bits_of(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
inline uint64_t bits_of(double x) {
  return __builtin_bit_cast(uint64_t, x);
}
inline float float_of(uint32_t x) {
  return __builtin_bit_cast(float, x);
}
inline double double_of(uint64_t x) {
  return __builtin_bit_cast(double, x);
}

inline uint32_t canonical(float x) {
  return x != x ? canonical_nan32 : bits_of(x);
}
/// Subnormals become zeros of their sign.
inline uint32_t flushed_bits(uint32_t x) {
  return x & 0x7f800000u ? x : x & 0x80000000u;
}
inline float flushed(float x) {
  return float_of(flushed_bits(bits_of(x)));
}

/// a + b rounded to odd, for operands whose sum stays inside double's range. Infinities and NaN pass.
inline double odd_sum(double a, double b) {
  const double s = a + b;
  const double t = s - a;
  const double e = (a - (s - t)) + (b - t);  // exact error of s (Knuth's TwoSum)
  const uint64_t bits = bits_of(s);
  const bool inexact = e > 0 || e < 0;  // false for NaN, which infinities make
  const uint64_t step = (e > 0) == (s > 0) ? uint64_t{1} : ~uint64_t{0};
  return double_of(inexact && !(bits & 1) ? bits + step : bits);
}

/// A double (exact, or rounded to odd) to float in a rounding mode.
template <Round mode>
inline float narrowed(double x) {
  const float nearest = static_cast<float>(x);
  if constexpr (mode == Round::nearest) return nearest;
  const double back = nearest;
  const uint32_t bits = bits_of(nearest);
  const bool above = back > x, below = back < x;
  const bool negative = bits >> 31;
  bool outward = false, inward = false;  // step of the magnitude
  if constexpr (mode == Round::zero) inward = negative ? below : above;
  if constexpr (mode == Round::down) inward = above && !negative, outward = above && negative;
  if constexpr (mode == Round::up) inward = below && negative, outward = below && !negative;
  return float_of(bits + (outward ? 1u : 0u) - (inward ? 1u : 0u));
}

/// The sign of an exact zero sum: -0 when rounding down unless both terms are +0.
template <Round mode>
inline float signed_zero(float result, double a, double b) {
  if constexpr (mode != Round::down) return result;
  const bool both_positive = !(bits_of(a) >> 63) && !(bits_of(b) >> 63);
  return result == 0 && a == -b && !both_positive ? -0.0f : result;
}

template <Round mode>
inline float added(float a, float b) {
  if constexpr (mode == Round::nearest) return a + b;
  return signed_zero<mode>(narrowed<mode>(odd_sum(a, b)), a, b);
}
template <Round mode>
inline float multiplied(float a, float b) {
  if constexpr (mode == Round::nearest) return a * b;
  return narrowed<mode>(static_cast<double>(a) * b);  // 48 bits: exact
}
template <Round mode>
inline float fused(float a, float b, float c) {
#ifdef __FMA__
  if constexpr (mode == Round::nearest) return __builtin_fmaf(a, b, c);
#endif
  const double product = static_cast<double>(a) * b;  // 48 bits: exact
  return signed_zero<mode>(narrowed<mode>(odd_sum(product, c)), product, c);
}

/// A 16-bit float format.
struct Half {
  static constexpr int precision = 11, min_exponent = -14, max_exponent = 15, fraction_bits = 10;
};
struct Brain {
  static constexpr int precision = 8, min_exponent = -126, max_exponent = 127, fraction_bits = 7;
};

inline double widened(Half, uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu;
  const double value = magnitude >= 0x7c00u ? (magnitude > 0x7c00u ? __builtin_nan("") : __builtin_inf())
                       : magnitude < 0x400u
                           ? magnitude * 0x1p-24
                           : (0x400u | (magnitude & 0x3ffu)) *
                                 double_of(static_cast<uint64_t>((magnitude >> 10) - 25 + 1023) << 52);
  return bits & 0x8000u ? -value : value;
}
inline double widened(Brain, uint16_t bits) {
  return static_cast<double>(float_of(static_cast<uint32_t>(bits) << 16));
}

/// A double (exact, or rounded to odd) to a 16-bit format in a rounding mode; NaN is canonical.
template <class Format, Round mode>
inline uint16_t narrowed_half(double x) {
  if (x != x) return canonical_nan16;
  const uint64_t bits = bits_of(x);
  const bool negative = bits >> 63;
  const uint16_t sign = negative ? 0x8000u : 0;
  constexpr uint16_t infinity =
      static_cast<uint16_t>((Format::max_exponent * 2 + 1) << Format::fraction_bits);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude == 0) return sign;
  if (magnitude == uint64_t{0x7ff} << 52) return sign | infinity;
  int exponent = static_cast<int>(magnitude >> 52) - 1023;
  uint64_t significand = (magnitude & ((uint64_t{1} << 52) - 1)) | (magnitude >> 52 ? uint64_t{1} << 52 : 0);
  // Unit of the result in units of 2^-52 of the significand's leading position.
  int shift =
      52 - Format::fraction_bits + (exponent < Format::min_exponent ? Format::min_exponent - exponent : 0);
  if (shift > 62) shift = 62;
  const uint64_t kept = significand >> shift, rest = significand & ((uint64_t{1} << shift) - 1),
                 half = uint64_t{1} << (shift - 1);
  bool away = false;
  if constexpr (mode == Round::nearest) away = rest > half || (rest == half && (kept & 1));
  if constexpr (mode == Round::down) away = rest && negative;
  if constexpr (mode == Round::up) away = rest && !negative;
  // Exponent field and fraction add up so that a carry moves to the next binade.
  const int field = exponent < Format::min_exponent ? 0 : exponent - Format::min_exponent;
  const uint64_t encoded = (static_cast<uint64_t>(field) << Format::fraction_bits) + kept + (away ? 1 : 0);
  if (exponent > Format::max_exponent || encoded >= infinity) {
    const bool to_infinity =
        mode == Round::nearest || (mode == Round::down && negative) || (mode == Round::up && !negative);
    return static_cast<uint16_t>(sign | (to_infinity ? infinity : infinity - 1));
  }
  return static_cast<uint16_t>(sign | encoded);
}

/// A NaN passes with its sign and payload, made quiet. Of several the last of `sources` passes: b before a,
/// in fma b before c before a, in div a before b. An invalid operation makes 0xfff8000000000000. (Seen on an
/// H200; PTX leaves payloads open.)
inline uint64_t quiet(double x) {
  return bits_of(x) | 0x0008000000000000ull;
}
template <class... Sources>
inline uint64_t finished(double x, Sources... sources) {
  if (x == x) return bits_of(x);
  uint64_t result = 0;
  ((result = sources != sources ? quiet(sources) : result), ...);
  return result == 0 ? 0xfff8000000000000ull : result;
}

}  // namespace assay::vm::ASSAY_LANES
