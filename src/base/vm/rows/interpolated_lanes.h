// sfu::ex2, rcp and rsq without branches and in words of 32 bits, so that the compiler makes vectors of them:
// kernels of this field spend much of their time in ex2. The same bits as special_function_unit.h.
#pragma once
#include "src/base/vm/interpolation.h"
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {

inline constexpr uint32_t sign_bit = 0x80000000u, infinity_bits = 0x7f800000u, fraction_bits = 0x007fffffu;

/// The 24 leading bits of the 40-bit sum of interpolate(). Its 8 lowest bits, which only the products of x's
/// 8 low bits, the square and the bias reach, give no more than a carry.
inline uint32_t significand(const Segment* segments, uint32_t index, uint32_t x, int32_t bias) {
  const int32_t c1 = segments[index].c1, c2 = segments[index].c2;
  const int32_t low =
      c1 * static_cast<int32_t>(x & 0xff) + 2 * c2 * static_cast<int32_t>(truncated_square(x)) + bias;
  const int32_t high = c1 * static_cast<int32_t>(x >> 8) + (low >> 8);
  return ((static_cast<uint32_t>(segments[index].c0) << 6) + static_cast<uint32_t>(high)) >> 8;
}

inline uint32_t exponential(uint32_t bits) {
  const uint32_t magnitude = bits & ~sign_bit;
  const uint32_t bounded = magnitude < 0x437fffffu ? magnitude : 0x437fffffu;  // below 256
  const auto fixed = static_cast<int32_t>(float_of(bounded) * 0x1p23f);
  const int32_t negative = -static_cast<int32_t>(bits >> 31);
  const int32_t whole = (fixed & 0x7fffff) == 0 ? 1 : 0;
  const int32_t power = (fixed ^ negative) + (whole & negative);  // one's complement but for whole numbers
  const uint32_t fraction = static_cast<uint32_t>(power) & fraction_bits;
  const uint32_t unit =
      significand(exponential_segments, fraction >> 17, fraction & 0x1ffffu, exponential_bias);
  const int32_t field = (power >> 23) + 127;
  const uint32_t normal = unit + (static_cast<uint32_t>(field - 1) << 23);
  const uint32_t bounded_above = field >= 255 ? infinity_bits : normal;
  const uint32_t result = field <= 0 ? 0 : bounded_above;
  return magnitude > infinity_bits ? canonical_nan32 : result;
}

/// significand 2^(field - 150), zero below the smallest normal number.
inline uint32_t assembled(uint32_t significand, int32_t field) {
  const int32_t bits = static_cast<int32_t>(significand) + (field - 1) * (1 << 23);
  return bits < 1 << 23 ? 0 : static_cast<uint32_t>(bits);
}

inline uint32_t reciprocal(uint32_t bits) {
  const uint32_t magnitude = bits & ~sign_bit, sign = bits & sign_bit, fraction = bits & fraction_bits;
  const auto field = static_cast<int32_t>(magnitude >> 23);
  const uint32_t inexact =
      significand(reciprocal_segments, fraction >> 16, (fraction & 0xffffu) << 1, reciprocal_bias);
  const uint32_t unit = fraction == 0 ? 1u << 24 : inexact;
  const uint32_t quotient = magnitude == infinity_bits ? 0 : assembled(unit, 253 - field);
  const uint32_t result = sign | (field == 0 ? infinity_bits : quotient);
  return magnitude > infinity_bits ? canonical_nan32 : result;
}

inline uint32_t inverse_root(uint32_t bits) {
  const uint32_t magnitude = bits & ~sign_bit, sign = bits & sign_bit, fraction = bits & fraction_bits;
  const auto field = static_cast<int32_t>(magnitude >> 23);
  const uint32_t odd = 1u - (static_cast<uint32_t>(field) & 1u);
  const uint32_t inexact =
      significand(inverse_root_segments, odd * 64 + (fraction >> 17), fraction & 0x1ffffu, inverse_root_bias);
  const uint32_t unit = (fraction | odd) == 0 ? 1u << 24 : inexact;
  const uint32_t root = magnitude == infinity_bits ? 0 : assembled(unit, 126 - ((field - 127) >> 1));
  const uint32_t positive = field == 0 ? infinity_bits | sign : root;
  const bool invalid = magnitude > infinity_bits || (sign != 0 && field != 0);
  return invalid ? canonical_nan32 : positive;
}

struct Exponential {
  uint32_t operator()(uint32_t x) const { return exponential(x); }
};
struct Reciprocal {
  uint32_t operator()(uint32_t x) const { return reciprocal(x); }
};
struct InverseRoot {
  uint32_t operator()(uint32_t x) const { return inverse_root(x); }
};

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

/// Loops of their own, because around a choice of arguments the compiler makes branches and then no vectors.
template <class F, class Scaling>
void scaled_lanes(void* d, const void* a, const void*, const void*, const void*) {
  float scale[32];
  uint32_t values[32];
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) scale[i] = Scaling::before(F32::get(a, i));
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) values[i] = bits_of(F32::get(a, i) * scale[i]);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) values[i] = F{}(values[i]);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) U32::put(d, i, Scaling::after(values[i], scale[i]));
}

}  // namespace assay::vm::ASSAY_LANES
