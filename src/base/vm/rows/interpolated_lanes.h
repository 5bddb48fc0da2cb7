// sfu::ex2, rcp and rsq without branches and in words of 32 bits, so that the compiler makes vectors of them:
// kernels of this field spend much of their time in ex2. sqrt, lg2, sin and cos, whose sums begin at any bit,
// take these in doubles, which hold them exactly. The same bits as special_function_unit.h.
#pragma once
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include <bit>

#include "src/base/vm/interpolation.h"
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {

inline constexpr uint32_t sign_bit = 0x80000000u, infinity_bits = 0x7f800000u, fraction_bits = 0x007fffffu;

/// The 24 leading bits of the 40-bit sum of interpolate(). Its 8 lowest bits, which only the products of x's
/// 8 low bits, the square and the bias reach, give no more than a carry.
inline uint32_t significand(uint32_t c0, int32_t c1, int32_t c2, uint32_t x, int32_t bias) {
  const int32_t low =
      c1 * static_cast<int32_t>(x & 0xff) + 2 * c2 * static_cast<int32_t>(truncated_square(x)) + bias;
  const int32_t high = c1 * static_cast<int32_t>(x >> 8) + (low >> 8);
  return ((c0 << 6) + static_cast<uint32_t>(high)) >> 8;
}

/// significand 2^(field - 150), zero below the smallest normal number.
inline uint32_t assembled(uint32_t significand, int32_t field) {
  const int32_t bits = static_cast<int32_t>(significand) + (field - 1) * (1 << 23);
  return bits < 1 << 23 ? 0 : static_cast<uint32_t>(bits);
}

// An operation in two parts: place() gives the segment and, in the 17 low bits, x; finished() takes what
// significand() makes of them.

struct Exponential {
  static constexpr const Segment* segments = exponential_segments;
  static constexpr int count = 64;
  static constexpr int32_t bias = exponential_bias;

  static int32_t power(uint32_t bits) {
    const uint32_t magnitude = bits & ~sign_bit;
    const uint32_t bounded = magnitude < 0x437fffffu ? magnitude : 0x437fffffu;  // below 256
    const auto fixed = static_cast<int32_t>(float_of(bounded) * 0x1p23f);
    const int32_t negative = -static_cast<int32_t>(bits >> 31);
    const int32_t whole = (fixed & 0x7fffff) == 0 ? 1 : 0;
    return (fixed ^ negative) + (whole & negative);  // one's complement but for whole numbers
  }
  static uint32_t place(uint32_t bits) { return static_cast<uint32_t>(power(bits)) & fraction_bits; }
  static uint32_t finished(uint32_t bits, uint32_t unit) {
    const int32_t field = (power(bits) >> 23) + 127;
    const uint32_t normal = unit + (static_cast<uint32_t>(field - 1) << 23);
    const uint32_t bounded_above = field >= 255 ? infinity_bits : normal;
    const uint32_t result = field <= 0 ? 0 : bounded_above;
    return (bits & ~sign_bit) > infinity_bits ? canonical_nan32 : result;
  }
};

struct Reciprocal {
  static constexpr const Segment* segments = reciprocal_segments;
  static constexpr int count = 128;
  static constexpr int32_t bias = reciprocal_bias;

  static uint32_t place(uint32_t bits) { return (bits & fraction_bits) << 1; }
  static uint32_t finished(uint32_t bits, uint32_t inexact) {
    const uint32_t magnitude = bits & ~sign_bit, sign = bits & sign_bit, fraction = bits & fraction_bits;
    const auto field = static_cast<int32_t>(magnitude >> 23);
    const uint32_t unit = fraction == 0 ? 1u << 24 : inexact;
    const uint32_t quotient = magnitude == infinity_bits ? 0 : assembled(unit, 253 - field);
    const uint32_t result = sign | (field == 0 ? infinity_bits : quotient);
    return magnitude > infinity_bits ? canonical_nan32 : result;
  }
};

struct InverseRoot {
  static constexpr const Segment* segments = inverse_root_segments;
  static constexpr int count = 128;
  static constexpr int32_t bias = inverse_root_bias;

  static uint32_t odd(uint32_t bits) { return 1u - ((bits >> 23) & 1u); }
  static uint32_t place(uint32_t bits) { return odd(bits) << 23 | (bits & fraction_bits); }
  static uint32_t finished(uint32_t bits, uint32_t inexact) {
    const uint32_t magnitude = bits & ~sign_bit, sign = bits & sign_bit, fraction = bits & fraction_bits;
    const auto field = static_cast<int32_t>(magnitude >> 23);
    const uint32_t unit = (fraction | odd(bits)) == 0 ? 1u << 24 : inexact;
    const uint32_t root = magnitude == infinity_bits ? 0 : assembled(unit, 126 - ((field - 127) >> 1));
    const uint32_t positive = field == 0 ? infinity_bits | sign : root;
    const bool invalid = magnitude > infinity_bits || (sign != 0 && field != 0);
    return invalid ? canonical_nan32 : positive;
  }
};

/// The coefficients of 32 segments.
struct Coefficients {
  alignas(64) int32_t c0[32], c1[32], c2[32];
};

#if defined(__AVX512F__) && !defined(__clang__)  // clang has no shuffle by places in a vector
/// The segments' coefficients apart, for look-ups of 16 words among 32.
template <class F>
struct Table {
  alignas(64) int32_t c[3][F::count];
  Table() {
    for (int i = 0; i < F::count; ++i)
      c[0][i] = F::segments[i].c0, c[1][i] = F::segments[i].c1, c[2][i] = F::segments[i].c2;
  }
};

template <int count>
inline void look_up(const int32_t* table, const int32_t* index, int32_t* to) {
  typedef int32_t Words __attribute__((vector_size(64), may_alias));
  const auto pick = [](Words low, Words high, Words at) {
    return reinterpret_cast<Words>(_mm512_permutex2var_epi32(
        reinterpret_cast<__m512i>(low), reinterpret_cast<__m512i>(at), reinterpret_cast<__m512i>(high)));
  };
  const auto* words = reinterpret_cast<const Words*>(table);
  for (int i = 0; i < 32; i += 16) {
    const Words at = *reinterpret_cast<const Words*>(index + i), within = at & 31;
    Words found = pick(words[0], words[1], within);
#pragma GCC unroll 4
    for (int from = 32; from < count; from += 32)
      found = at >= from ? pick(words[from / 16], words[from / 16 + 1], within) : found;
    *reinterpret_cast<Words*>(to + i) = found;
  }
}

template <class F>
inline void look_up_segments(const int32_t* index, Coefficients& found) {
  static const Table<F> table;
  look_up<F::count>(table.c[0], index, found.c0);
  look_up<F::count>(table.c[1], index, found.c1);
  look_up<F::count>(table.c[2], index, found.c2);
}
#else
template <class F>
inline void look_up_segments(const int32_t* index, Coefficients& found) {
  for (int i = 0; i < 32; ++i) {
    const Segment& segment = F::segments[index[i]];
    found.c0[i] = segment.c0, found.c1[i] = segment.c1, found.c2[i] = segment.c2;
  }
}
#endif

template <class F>
void interpolated_lanes(void* d, const void* a, const void*, const void*, const void*) {
  alignas(64) int32_t index[32];
  Coefficients of;
  for (int i = 0; i < 32; ++i) index[i] = static_cast<int32_t>(F::place(U32::get(a, i)) >> 17);
  look_up_segments<F>(index, of);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    const uint32_t bits = U32::get(a, i);
    const uint32_t unit =
        significand(static_cast<uint32_t>(of.c0[i]), of.c1[i], of.c2[i], F::place(bits) & 0x1ffffu, F::bias);
    U32::put(d, i, F::finished(bits, unit));
  }
}

/// The float of 2^-40 sum, cut to 24 bits; a whole number below 2^53, not negative.
inline uint32_t cut_to_float(double sum) {
  const auto bits = static_cast<uint32_t>(std::bit_cast<uint64_t>(sum) >> 29);
  return sum == 0 ? 0 : bits - (uint32_t{1023 - 127 + 40} << 23);
}

// Operations whose sum, 2^40 times the value, is a whole number in a double: place() as above; word() makes a
// float of it, finished() chooses between that and what it is not.

struct SquareRoot {
  static constexpr const Segment* segments = root_segments;
  static constexpr int count = 128;
  static constexpr int32_t bias = root_bias;

  static uint32_t place(uint32_t bits) { return InverseRoot::place(bits); }
  static uint32_t word(uint32_t, double sum) { return cut_to_float(sum); }
  static uint32_t finished(uint32_t bits, uint32_t unit) {
    const uint32_t magnitude = bits & ~sign_bit, sign = bits & sign_bit;
    const auto exponent = static_cast<int32_t>(magnitude >> 23) - 127;
    const uint32_t root = unit + (static_cast<uint32_t>(exponent >> 1) << 23);
    const uint32_t positive = magnitude == infinity_bits ? infinity_bits : root;
    const bool invalid = magnitude > infinity_bits || (sign != 0 && exponent != -127);
    const uint32_t result = exponent == -127 ? sign : positive;
    return invalid ? canonical_nan32 : result;
  }
};

struct Logarithm {
  static constexpr const Segment* segments = logarithm_segments;
  static constexpr int count = 64;
  static constexpr int32_t bias = logarithm_bias;

  static uint32_t place(uint32_t bits) { return bits & fraction_bits; }
  static int32_t exponent(uint32_t bits) { return static_cast<int32_t>(bits >> 23 & 255) - 127; }
  static uint32_t word(uint32_t bits, double mantissa) {
    const double sum = mantissa + (exponent(bits) - 1) * 0x1p40;
    // 36 fraction bits; a negative sum is turned by one's complement, which cuts it toward zero.
    const double away = __builtin_fabs(sum) - (sum < 0 ? 1.0 : 0.0);
    const auto last = static_cast<int32_t>(std::bit_cast<uint64_t>(away + 0x1p52)) & 15;
    return cut_to_float(away - last) | (sum < 0 ? sign_bit : 0);
  }
  static uint32_t finished(uint32_t bits, uint32_t logarithm) {
    const uint32_t normal = bits == 0x3f800000u ? 0 : logarithm;
    const uint32_t positive = bits == infinity_bits ? infinity_bits : normal;
    const bool tiny = exponent(bits) == -127;
    const bool invalid = (bits & ~sign_bit) > infinity_bits || ((bits & sign_bit) != 0 && !tiny);
    const uint32_t result = tiny ? sign_bit | infinity_bits : positive;
    return invalid ? canonical_nan32 : result;
  }
};

/// From radians; cos is a quarter ahead.
template <bool ahead>
struct Circular {
  static constexpr const Segment* segments = sine_segments;
  static constexpr int count = 64;
  static constexpr int32_t bias = 0;

  /// floor(|turns| 2^25) modulo 2^25, of turns cut to a float.
  static uint32_t quarters(uint32_t bits) {
    const double turns = static_cast<double>(float_of(bits & ~sign_bit)) * 0x1.45f306p-3;
    const auto word = static_cast<uint32_t>(std::bit_cast<uint64_t>(turns) >> 29);
    const uint32_t significand = (word & fraction_bits) | 1u << 23;
    const auto shift = static_cast<int32_t>(std::bit_cast<uint64_t>(turns) >> 52) - 1023 - 23 + 25;
    const uint32_t left = shift < 32 ? significand << (shift & 31) : 0;
    const uint32_t right = shift > -32 ? significand >> (-shift & 31) : 0;
    return ((shift >= 0 ? left : right) + (ahead ? 1u << 23 : 0)) & 0x01ffffffu;
  }
  static uint32_t place(uint32_t bits) {
    const uint32_t at = quarters(bits), fraction = at & fraction_bits;
    return at >> 23 & 1 ? fraction_bits - fraction : fraction;
  }
  static uint32_t word(uint32_t bits, double sum) {
    return cut_to_float(sum) | ((quarters(bits) >> 24 << 31) ^ (ahead ? 0 : bits & sign_bit));
  }
  static uint32_t finished(uint32_t bits, uint32_t value) {
    return (bits & ~sign_bit) >= infinity_bits ? canonical_nan32 : value;
  }
};

template <class F>
void summed_lanes(void* d, const void* a, const void*, const void*, const void*) {
  alignas(64) int32_t place[32], index[32];
  Coefficients of;
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) place[i] = static_cast<int32_t>(F::place(U32::get(a, i)));
  for (int i = 0; i < 32; ++i) index[i] = place[i] >> 17;
  look_up_segments<F>(index, of);
  alignas(64) uint32_t words[32];
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    const int32_t x = place[i] & 0x1ffff, square = static_cast<int32_t>(truncated_square(x));
    const double sum = of.c0[i] * 0x1p14 + static_cast<double>(of.c1[i]) * x +
                       static_cast<double>(of.c2[i]) * (2 * square) + F::bias;
    words[i] = F::word(U32::get(a, i), sum);
  }
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) U32::put(d, i, F::finished(U32::get(a, i), words[i]));
}

/// What a plain form does around the operation (approximate.cpp): powers of two before and after.
struct HalvedBelowMinus126 {
  static float before(float x) { return x < -126.0f ? 0.5f : 1.0f; }
  static uint32_t after(uint32_t y, float scale) {
    const uint32_t halved = ((bits_of(scale) >> 23) & 1) - 1;  // of 1 the exponent's field is odd
    return (bits_of(float_of(y) * float_of(y)) & halved) | (y & ~halved);
  }
};
struct ScaledReciprocal {
  static float before(float x) {
    const float magnitude = __builtin_fabsf(x), small = magnitude < 0x1p-126f ? 0x1p24f : 1.0f;
    return magnitude > 0x1p126f ? 0x1p-2f : small;
  }
  static uint32_t after(uint32_t y, float scale) { return canonical(float_of(y) * scale); }
};
struct ScaledRoot {
  static float before(float x) { return __builtin_fabsf(x) < 0x1p-126f ? 0x1p24f : 1.0f; }
  static uint32_t after(uint32_t y, float scale) {
    return canonical(float_of(y) * (scale > 1.0f ? 0x1p12f : 1.0f));
  }
};

struct ScaledSquareRoot {
  static float before(float x) { return ScaledRoot::before(x); }
  static uint32_t after(uint32_t y, float scale) {
    return canonical(float_of(y) * (scale > 1.0f ? 0x1p-12f : 1.0f));
  }
};
struct ScaledLogarithm {
  static float before(float x) { return ScaledRoot::before(x); }
  static uint32_t after(uint32_t y, float scale) {
    return canonical(float_of(y) - (scale > 1.0f ? 24.0f : 0.0f));
  }
};

/// Loops of their own, because around a choice of arguments the compiler makes branches and then no vectors.
template <class F, class Scaling, LaneFunction lanes = interpolated_lanes<F>>
void scaled_lanes(void* d, const void* a, const void*, const void*, const void*) {
  float scale[32];
  uint32_t values[32];
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) scale[i] = Scaling::before(F32::get(a, i));
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) values[i] = bits_of(F32::get(a, i) * scale[i]);
  lanes(values, values, nullptr, nullptr, nullptr);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) U32::put(d, i, Scaling::after(values[i], scale[i]));
}

}  // namespace assay::vm::ASSAY_LANES
