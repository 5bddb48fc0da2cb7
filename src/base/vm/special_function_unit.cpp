#include "src/base/vm/special_function_unit.h"

#include <bit>

#include "src/base/vm/interpolation.h"

namespace assay::vm::sfu {
namespace {

constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u, kNan = 0x7fffffffu, kOne = 0x3f800000u;
constexpr uint32_t kFraction = 0x007fffffu, kPlace = 0x0001ffffu;

bool is_nan(uint32_t x) {
  return (x & ~kSign) > kInfinity;
}
/// Zero or subnormal.
bool is_tiny(uint32_t x) {
  return (x & kInfinity) == 0;
}
int exponent_of(uint32_t x) {
  return static_cast<int>((x >> 23) & 0xff) - 127;
}

/// Segment and place of a 23-bit fraction, 64 segments.
int64_t interpolate(const Segment* segments, uint32_t fraction, int32_t bias = 0) {
  return vm::interpolate(segments[fraction >> 17], fraction & kPlace, bias);
}

/// The float of 2^-40 value, cut to 24 bits; value >= 0.
uint32_t cut_to_float(int64_t value) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<uint64_t>(value);
  const int top = 63 - std::countl_zero(magnitude);
  const auto significand =
      static_cast<uint32_t>(top >= 23 ? magnitude >> (top - 23) : magnitude << (23 - top));
  return (static_cast<uint32_t>(top - 40 + 127) << 23) | (significand & kFraction);
}

/// bits * 2^exponent for normal `bits`; 2^128 and above is infinite, below 2^-126 zero.
uint32_t scale_flush(uint32_t bits, int exponent) {
  const int e = static_cast<int>((bits >> 23) & 0xff) + exponent;
  const uint32_t sign = bits & kSign;
  if (e >= 255) return sign | kInfinity;
  if (e <= 0) return sign;
  return sign | (static_cast<uint32_t>(e) << 23) | (bits & kFraction);
}
/// The same to the high word of a double, cut to 20 fraction bits.
uint32_t scale_flush_wide(uint32_t bits, int exponent) {
  const int e = exponent_of(bits) + exponent + 1023;
  return e <= 0 ? 0 : (static_cast<uint32_t>(e) << 20) | ((bits & kFraction) >> 3);
}

/// 1/m for m = 1 + fraction 2^-23: 128 segments, places of 16 bits.
uint32_t reciprocal(uint32_t fraction) {
  return cut_to_float(
      vm::interpolate(reciprocal_segments[fraction >> 16], (fraction & 0xffff) << 1, reciprocal_bias));
}
/// 1/sqrt(m), m = 1 + fraction 2^-23, twice that where `odd`. That of one is exact.
uint32_t inverse_root(uint32_t fraction, bool odd) {
  if (fraction == 0 && !odd) return kOne;
  return cut_to_float(interpolate(&inverse_root_segments[odd ? 64 : 0], fraction, inverse_root_bias));
}
uint32_t power_of_two(uint32_t fraction) {
  return cut_to_float(interpolate(exponential_segments, fraction, exponential_bias)) + (1u << 23);
}

/// floor(|x| 2^places) modulo 2^32, of a normal x.
uint32_t fixed_point(uint32_t x, int places) {
  const uint32_t significand = (x & kFraction) | (kFraction + 1);
  const int shift = exponent_of(x) - 23 + places;
  if (shift >= 0) return shift < 32 ? significand << shift : 0;
  return shift > -32 ? significand >> -shift : 0;
}

/// sin(pi/2 (quadrant + f)), f the 23 low bits; odd quadrants run backwards, by one's complement.
uint32_t sine_of_quarters(uint32_t quarters) {
  const uint32_t fraction = quarters & kFraction, quadrant = quarters >> 23;
  const uint32_t magnitude =
      cut_to_float(interpolate(sine_segments, quadrant & 1 ? kFraction - fraction : fraction));
  return magnitude | (quadrant & 2 ? kSign : 0);
}

/// How the binades of tanh from [2^-8, 2^-7) to [4, 8) are cut: log2 of the segments, the first segment.
constexpr struct {
  int log2_segments;
  uint32_t first;
} kTanhBinades[11] = {{0, 0},  {0, 1},  {0, 2},  {1, 3},  {1, 5}, {2, 7},
                      {2, 11}, {2, 15}, {3, 19}, {4, 27}, {3, 43}};

}  // namespace

uint32_t rcp(uint32_t x) {
  if (is_nan(x)) return kNan;
  const uint32_t sign = x & kSign;
  if (is_tiny(x)) return sign | kInfinity;
  if ((x & ~kSign) == kInfinity) return sign;
  return sign | scale_flush(reciprocal(x & kFraction), -exponent_of(x));
}

uint32_t rcp64h(uint32_t high) {
  const uint32_t sign = high & kSign, magnitude = high & ~kSign;
  if (magnitude > 0x7ff00000u) return kNan;
  if (magnitude < 0x00100000u) return sign | 0x7ff00000u;
  if (magnitude == 0x7ff00000u) return sign;
  return sign |
         scale_flush_wide(reciprocal((magnitude & 0xfffffu) << 3), 1023 - static_cast<int>(magnitude >> 20));
}

uint32_t rsq(uint32_t x) {
  if (is_nan(x)) return kNan;
  if (is_tiny(x)) return (x & kSign) | kInfinity;
  if (x & kSign) return kNan;
  if (x == kInfinity) return 0;
  const int exponent = exponent_of(x), odd = exponent & 1;
  return scale_flush(inverse_root(x & kFraction, odd), -(exponent - odd) / 2);
}

uint32_t rsq64h(uint32_t high) {
  const uint32_t magnitude = high & ~kSign;
  if (magnitude > 0x7ff00000u) return kNan;
  if (magnitude < 0x00100000u) return (high & kSign) | 0x7ff00000u;
  if (high & kSign) return kNan;
  if (magnitude == 0x7ff00000u) return 0;
  const int exponent = static_cast<int>(magnitude >> 20) - 1023, odd = exponent & 1;
  return scale_flush_wide(inverse_root((magnitude & 0xfffffu) << 3, odd), -(exponent - odd) / 2);
}

uint32_t sqrt(uint32_t x) {
  if (is_nan(x)) return kNan;
  if (is_tiny(x)) return x & kSign;
  if (x & kSign) return kNan;
  if (x == kInfinity) return kInfinity;
  const int exponent = exponent_of(x), odd = exponent & 1;
  const uint32_t unit = cut_to_float(interpolate(&root_segments[odd ? 64 : 0], x & kFraction, root_bias));
  return scale_flush(unit, (exponent - odd) / 2);
}

// exponent + log2(m) has 36 fraction bits; a negative sum is turned by one's complement. log2(1) is exact.
uint32_t lg2(uint32_t x) {
  if (is_nan(x)) return kNan;
  if (is_tiny(x)) return kSign | kInfinity;
  if (x & kSign) return kNan;
  if (x == kInfinity) return kInfinity;
  if (x == kOne) return 0;
  const int64_t sum = interpolate(logarithm_segments, x & kFraction, logarithm_bias) +
                      (int64_t{exponent_of(x)} - 1) * (int64_t{1} << 40);
  const int64_t cut = sum >> 4;
  return cut < 0 ? kSign | cut_to_float(~cut * 16) : cut_to_float(cut * 16);
}

// 2^-|x| from the one's complement of |x|'s fraction, unless that is 0.
uint32_t ex2(uint32_t x) {
  if (is_nan(x)) return kNan;
  if (is_tiny(x)) return kOne;
  const bool negative = (x & kSign) != 0;
  if ((x & ~kSign) >= 0x43800000u) return negative ? 0 : kInfinity;  // |x| >= 256
  const uint32_t magnitude = fixed_point(x, 23), fraction = magnitude & kFraction;
  const int whole = static_cast<int>(magnitude >> 23);
  if (!negative) return scale_flush(power_of_two(fraction), whole);
  if (fraction == 0) return scale_flush(kOne, -whole);
  return scale_flush(power_of_two(kFraction - fraction), -(whole + 1));
}

uint32_t sin(uint32_t turns) {
  if ((turns & ~kSign) >= kInfinity) return kNan;
  const uint32_t quarters = is_tiny(turns) ? 0 : fixed_point(turns, 25) & 0x01ffffffu;
  return sine_of_quarters(quarters) ^ (turns & kSign);
}

uint32_t cos(uint32_t turns) {
  if ((turns & ~kSign) >= kInfinity) return kNan;
  const uint32_t quarters = is_tiny(turns) ? 0 : fixed_point(turns, 25);
  return sine_of_quarters((quarters + (1u << 23)) & 0x01ffffffu);
}

// tanh(x) = x below 2^-8, 1 from 8 on. The places of a segment lose the bits below the 17th.
uint32_t tanh(uint32_t x) {
  if (is_nan(x)) return kNan;
  const uint32_t sign = x & kSign, magnitude = x & ~kSign;
  if (magnitude < 0x3b800000u) return x;
  if (magnitude >= 0x41000000u) return sign | kOne;
  const auto& binade = kTanhBinades[exponent_of(magnitude) + 8];
  const int within = 23 - binade.log2_segments;
  const uint32_t fraction = magnitude & kFraction;
  const Segment& segment = hyperbolic_tangent_segments[binade.first + (fraction >> within)];
  return sign | cut_to_float(vm::interpolate(segment, (fraction & ((1u << within) - 1)) >> (within - 17)));
}

}  // namespace assay::vm::sfu
