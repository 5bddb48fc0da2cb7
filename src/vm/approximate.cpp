#include "src/vm/approximate.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string>

#include "src/numerics/bad_input.h"
#include "src/vm/approximate_table.h"

namespace assay::vm {
namespace {

constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u, kNan = 0x7fffffffu, kOne = 0x3f800000u;
constexpr uint32_t kFraction = 0x007fffffu;

bool is_nan(uint32_t x) {
  return (x & ~kSign) > kInfinity;
}
bool is_tiny(uint32_t x) {
  return (x & kInfinity) == 0;
}  // zero or subnormal
float as_float(uint32_t x) {
  return std::bit_cast<float>(x);
}
uint32_t as_bits(double correctly_rounded) {
  return std::bit_cast<uint32_t>(static_cast<float>(correctly_rounded));
}

/// 2^((i + 1/2) / 1024): middles of 1024 intervals of [0, 1).
struct PowerTable {
  double middle[1024];
  PowerTable() {
    for (int i = 0; i < 1024; i++) middle[i] = std::exp2((i + 0.5) * 0x1p-10);
  }
};

/// 2^(j / 2^23), j < 2^23: the middle of j's interval times sum (r ln2)^n / n!, |r| <= 2^-11. The first term
/// left out is below 2^-64; the middle errs by an ulp, the product and Horner's last steps by one and a half:
/// in all 2^-51.
double power_of_fraction(uint32_t j) {
  static const PowerTable table;
  const double r = (static_cast<int>(j & 0x1fff) - 0x1000) * 0x1p-23;
  double sum = 0x1.3b2ab6fba4e77p-7;
  sum = sum * r + 0x1.c6b08d704a0c0p-5;
  sum = sum * r + 0x1.ebfbdff82c58fp-3;
  sum = sum * r + 0x1.62e42fefa39efp-1;
  const double middle = table.middle[j >> 13];
  return middle + middle * (sum * r);
}

/// Result of ex2.approx.ftz for 1 + j/2^23, less one in the exponent. Over these 2^23 arguments 2^x keeps
/// 2^-24.2 ulp away from a boundary between two floats, relative 2^-48; so rounding the double above to float
/// is the correct rounding.
uint32_t ex2_fraction(uint32_t j) {
  return as_bits(power_of_fraction(j)) + static_cast<uint32_t>(ex2_differences()[j]);
}

/// bits * 2^exponent for normal `bits`; 2^128 and above is infinite, below 2^-126 zero.
uint32_t scale_flush(uint32_t bits, int exponent) {
  const int e = static_cast<int>((bits >> 23) & 0xff) + exponent;
  const uint32_t sign = bits & kSign;
  if (e >= 255) return sign | kInfinity;
  if (e <= 0) return sign;
  return sign | (static_cast<uint32_t>(e) << 23) | (bits & kFraction);
}

}  // namespace

// PTX ISA, ex2.approx.ftz.f32; the rule for an argument outside [1, 2) was compared with an H200 on all 2^32
// inputs.
uint32_t ex2_approx_ftz_f32(uint32_t x) {
  if (is_nan(x)) return kNan;
  if (is_tiny(x)) return kOne;
  const bool negative = (x & kSign) != 0;
  if ((x & ~kSign) >= 0x43800000u) return negative ? 0 : kInfinity;  // |x| >= 256
  const int shift = static_cast<int>((x >> 23) & 0xff) - 127;        // |x| * 2^23 = significand * 2^shift
  const uint64_t significand = (x & kFraction) | (kFraction + 1);
  const uint64_t m = shift >= 0 ? significand << shift : -shift > 24 ? 0 : significand >> -shift;
  const int k = static_cast<int>(m >> 23);
  const uint32_t f = static_cast<uint32_t>(m) & kFraction;
  if (!negative) return scale_flush(ex2_fraction(f), k);
  if (f == 0) return scale_flush(kOne, -k);
  return scale_flush(ex2_fraction(kFraction - f), -(k + 1));
}

// Below -126 the plain form halves the argument and squares, so that subnormal results are kept.
uint32_t ex2_approx_f32(uint32_t x) {
  if (is_nan(x) || !(as_float(x) < -126.0f)) return ex2_approx_ftz_f32(x);
  const float h = as_float(ex2_approx_ftz_f32(std::bit_cast<uint32_t>(as_float(x) * 0.5f)));
  return std::bit_cast<uint32_t>(h * h);
}

// 1/x in double rounded again to float is the correct rounding: 53 >= 2 * 24 + 2 bits (Figueroa, 1995).
uint32_t rcp_approx_ftz_f32(uint32_t x) {
  if (is_nan(x)) return kNan;
  const uint32_t sign = x & kSign;
  if (is_tiny(x)) return sign | kInfinity;
  if ((x & ~kSign) == kInfinity) return sign;
  const uint32_t fraction = x & kFraction;
  const uint32_t unit = as_bits(1.0 / static_cast<double>(as_float(kOne | fraction))) +
                        static_cast<uint32_t>(rcp_differences()[fraction]);
  return sign | scale_flush(unit, 127 - static_cast<int>((x >> 23) & 0xff));
}

// The plain form scales arguments with a subnormal argument or result by a power of two and back.
uint32_t rcp_approx_f32(uint32_t x) {
  const float v = as_float(x), magnitude = std::fabs(v);
  float scale = 1.0f;
  if (magnitude >= 0x1p126f && magnitude < INFINITY) scale = 0x1p-2f;
  if (magnitude < 0x1p-126f && magnitude > 0) scale = 0x1p24f;
  if (scale == 1.0f) return rcp_approx_ftz_f32(x);
  return std::bit_cast<uint32_t>(as_float(rcp_approx_ftz_f32(std::bit_cast<uint32_t>(v * scale))) * scale);
}

// 1/sqrt(x) in double, two correctly rounded operations: over the 2^24 inputs of [1, 4) rounding it to float
// was compared with the correct rounding, no difference.
uint32_t rsqrt_approx_ftz_f32(uint32_t x) {
  if (is_nan(x)) return kNan;
  if (is_tiny(x)) return (x & kSign) | kInfinity;
  if (x & kSign) return kNan;
  if (x == kInfinity) return 0;
  const int exponent = static_cast<int>(x >> 23) - 127;
  const uint32_t index = (x & kFraction) | (static_cast<uint32_t>(exponent & 1) << 23);
  const uint32_t in_binades = kOne + index;
  const uint32_t unit = as_bits(1.0 / std::sqrt(static_cast<double>(as_float(in_binades)))) +
                        static_cast<uint32_t>(rsqrt_differences()[index]);
  return scale_flush(unit, -((exponent - (exponent & 1)) / 2));
}

uint32_t rsqrt_approx_f32(uint32_t x) {
  const float v = as_float(x), magnitude = std::fabs(v);
  if (!(magnitude < 0x1p-126f && magnitude > 0)) return rsqrt_approx_ftz_f32(x);
  return std::bit_cast<uint32_t>(as_float(rsqrt_approx_ftz_f32(std::bit_cast<uint32_t>(v * 0x1p24f))) *
                                 0x1p12f);
}

uint32_t lg2_approx_ftz_f32(uint32_t x) {
  if (is_nan(x)) return kNan;
  if (is_tiny(x)) return kSign | kInfinity;
  if (x & kSign) return kNan;
  if (x == kInfinity) return kInfinity;
  if (x < 0x40000000u || x >= 0x40800000u)
    throw BadInput(
        fmt::format("lg2.approx.ftz.f32 of {} (0x{:08x}): results of the hardware are recorded for [2, 4) "
                    "only; rewrite the kernel with log2f or run it on a GPU",
                    as_float(x), x));
  return as_bits(std::log2(static_cast<double>(as_float(x)))) +
         static_cast<uint32_t>(lg2_differences()[x & kFraction]);
}

}  // namespace assay::vm
