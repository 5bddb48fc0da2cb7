#include "src/base/vm/approximate.h"

#include <bit>
#include <cmath>

#include "src/base/vm/special_function_unit.h"

namespace assay::vm {
namespace {

constexpr uint32_t kSign = 0x80000000u, kNan = 0x7fffffffu;

float as_float(uint32_t x) {
  return std::bit_cast<float>(x);
}
/// Results of the multiplier and the adder: NaN is canonical.
uint32_t as_bits(float x) {
  return x != x ? kNan : std::bit_cast<uint32_t>(x);
}
uint32_t flushed(uint32_t x) {
  return x & 0x7f800000u ? x : x & kSign;
}

uint32_t product(uint32_t a, float b) {
  return as_bits(as_float(a) * b);
}
uint32_t product(uint32_t a, uint32_t b) {
  return product(a, as_float(b));
}
/// Flushes a product that is below 2^-126 when rounded as if the exponent had no bound.
uint32_t product_ftz(uint32_t a, uint32_t b) {
  const float x = as_float(flushed(a)), y = as_float(flushed(b));
  const uint32_t bits = as_bits(x * y);
  const bool tiny = std::fabs(static_cast<double>(x) * y) < 0x1.ffffffp-127;
  return tiny ? bits & kSign : flushed(bits);
}

bool is_subnormal_or_zero(uint32_t x) {
  return std::fabs(as_float(x)) < 0x1p-126f;
}

/// 1 / (2 pi) x, rounded towards zero; subnormals are kept.
uint32_t turns(uint32_t x) {
  const double exact = static_cast<double>(as_float(x)) * 0x1.45f306p-3;  // 24 bits each: exact
  const auto rounded = static_cast<float>(exact);
  const bool outward = std::fabs(static_cast<double>(rounded)) > std::fabs(exact);
  return std::bit_cast<uint32_t>(rounded) - (outward ? 1u : 0u);
}

}  // namespace

uint32_t ex2_approx_ftz_f32(uint32_t x) {
  return sfu::ex2(x);
}
// Below -126 half the argument, squared: subnormal results are kept.
uint32_t ex2_approx_f32(uint32_t x) {
  if (!(as_float(x) < -126.0f)) return sfu::ex2(x);
  const uint32_t root = sfu::ex2(product(x, 0.5f));
  return product(root, root);
}

uint32_t rcp_approx_ftz_f32(uint32_t x) {
  return sfu::rcp(x);
}
// Arguments with a subnormal argument or result are scaled by a power of two and back.
uint32_t rcp_approx_f32(uint32_t x) {
  const float magnitude = std::fabs(as_float(x));
  const float scale = magnitude > 0x1p126f ? 0x1p-2f : magnitude < 0x1p-126f ? 0x1p24f : 1.0f;
  return product(sfu::rcp(product(x, scale)), scale);
}

uint32_t rsqrt_approx_ftz_f32(uint32_t x) {
  return sfu::rsq(x);
}
uint32_t rsqrt_approx_f32(uint32_t x) {
  if (!is_subnormal_or_zero(x)) return sfu::rsq(x);
  return product(sfu::rsq(product(x, 0x1p24f)), 0x1p12f);
}

uint32_t sqrt_approx_ftz_f32(uint32_t x) {
  return sfu::sqrt(x);
}
uint32_t sqrt_approx_f32(uint32_t x) {
  if (!is_subnormal_or_zero(x)) return sfu::sqrt(x);
  return product(sfu::sqrt(product(x, 0x1p24f)), 0x1p-12f);
}

uint32_t lg2_approx_ftz_f32(uint32_t x) {
  return sfu::lg2(x);
}
uint32_t lg2_approx_f32(uint32_t x) {
  if (!is_subnormal_or_zero(x)) return sfu::lg2(x);
  return as_bits(as_float(sfu::lg2(product(x, 0x1p24f))) - 24.0f);
}

uint32_t sin_approx_f32(uint32_t x) {
  return sfu::sin(turns(x));
}
uint32_t cos_approx_f32(uint32_t x) {
  return sfu::cos(turns(x));
}
uint32_t tanh_approx_f32(uint32_t x) {
  return sfu::tanh(x);
}

uint32_t div_approx_ftz_f32(uint32_t a, uint32_t b) {
  return product_ftz(a, sfu::rcp(b));
}
uint32_t div_approx_f32(uint32_t a, uint32_t b) {
  const float scale = is_subnormal_or_zero(b) ? 0x1p24f : 1.0f;
  return product(sfu::rcp(product(b, scale)), product(a, scale));
}
uint32_t div_full_ftz_f32(uint32_t a, uint32_t b) {
  if (!(std::fabs(as_float(b)) > 0x1p126f)) return product_ftz(sfu::rcp(b), a);
  const auto quarter = std::bit_cast<uint32_t>(0x1p-2f);
  return product_ftz(sfu::rcp(product_ftz(b, quarter)), product_ftz(a, quarter));
}
uint32_t div_full_f32(uint32_t a, uint32_t b) {
  const float magnitude = std::fabs(as_float(b));
  const float scale = magnitude > 0x1p126f ? 0x1p-2f : magnitude < 0x1p-126f ? 0x1p24f : 1.0f;
  return product(sfu::rcp(product(b, scale)), product(a, scale));
}

uint32_t widened_f16(uint16_t x) {
  const uint32_t sign = static_cast<uint32_t>(x & 0x8000u) << 16, magnitude = x & 0x7fffu;
  if (magnitude >= 0x7c00u) return sign | 0x7f800000u | (magnitude & 0x3ffu) << 13;
  if (magnitude < 0x400u) return sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  return sign | ((magnitude << 13) + (112u << 23));
}

namespace {

/// Cut to 11 bits, subnormals kept; 2^16 and above is infinite.
uint16_t cut_to_half(uint32_t x) {
  const auto sign = static_cast<uint16_t>((x >> 16) & 0x8000u);
  const uint32_t magnitude = x & ~kSign;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const auto exponent = static_cast<int>(magnitude >> 23);
  if (exponent >= 113) return static_cast<uint16_t>(sign | ((magnitude - (112u << 23)) >> 13));
  return static_cast<uint16_t>(sign | (exponent < 102 ? 0 : significand >> (126 - exponent)));
}
uint16_t cut_to_brain(uint32_t x) {
  return static_cast<uint16_t>(x >> 16);
}
double as_double(uint64_t x) {
  return std::bit_cast<double>(x);
}
double from_high(uint32_t high) {
  return as_double(static_cast<uint64_t>(high) << 32);
}
uint32_t high_of(uint64_t x) {
  return static_cast<uint32_t>(x >> 32);
}

/// A first estimate of 1/sqrt(x) and one step of third order.
double refined_inverse_root(double x) {
  const double estimate = from_high(sfu::rsq64h(high_of(std::bit_cast<uint64_t>(x))));
  const double rest = std::fma(x, -(estimate * estimate), 1.0);
  return std::fma(std::fma(rest, 0.375, 0.5), estimate * rest, estimate);
}

}  // namespace

uint16_t ex2_approx_f16(uint16_t x) {
  return cut_to_half(sfu::ex2(widened_f16(x)));
}
uint16_t ex2_approx_ftz_bf16(uint16_t x) {
  return cut_to_brain(sfu::ex2(widened_bf16(x)));
}
uint16_t tanh_approx_f16(uint16_t x) {
  return cut_to_half(sfu::tanh(widened_f16(x)));
}
uint16_t tanh_approx_bf16(uint16_t x) {
  return cut_to_brain(sfu::tanh(widened_bf16(x)));
}

uint64_t rcp_approx_ftz_f64(uint64_t x) {
  return static_cast<uint64_t>(sfu::rcp64h(high_of(x))) << 32;
}
uint64_t rsqrt_approx_ftz_f64(uint64_t x) {
  return static_cast<uint64_t>(sfu::rsq64h(high_of(x))) << 32;
}
uint64_t rsqrt_approx_f64(uint64_t x) {
  const double value = as_double(x);
  if (value != value) return x | 0x0008000000000000ull;  // x + x
  if (value == 0) return (x & 0x8000000000000000ull) | 0x7ff0000000000000ull;
  if (value < 0) return 0xfff8000000000000ull;
  if (value > 0x1.fffffffffffffp+1023) return 0;
  const bool subnormal = value < 0x1p-1022;
  const double root = refined_inverse_root(subnormal ? value * 0x1p54 : value) * (subnormal ? 0x1p27 : 1.0);
  return std::bit_cast<uint64_t>(root);
}

}  // namespace assay::vm
