#include "src/base/vm/tensor_core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/format.h"

namespace assay::vm {
namespace {

// Fraction bits kept, products per step and the exponent floors, measured on recorded results of each
// architecture ("Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004; sm_90 also against
// tests/data/mma_*.bin.gz and tests/data/fidelity_*.txt).
constexpr std::array<TensorCoreModel, 3> kModels{{
    {"sm_80", 80, 24, 8, 4, -132, -20, 0, 0},
    {"sm_89", 89, 24, 8, 4, -132, -20, 13, 16},
    {"sm_90", 90, 25, 16, 8, -133, -21, 13, 32},
}};

bool is_fp8(Element e) {
  return e == Element::e4m3 || e == Element::e5m2;
}

/// An operand as significand * 2^(exponent - fraction_bits); subnormals are not normalised.
struct Decoded {
  bool negative, zero, infinite, nan;
  uint64_t significand;
  int exponent;
};

Decoded decode_operand(const ElementFormat& f, uint32_t bits, bool flush) {
  bits >>= f.dropped_bits;
  const uint32_t mask = (1u << f.exponent_bits) - 1, all_ones = (1u << f.fraction_bits) - 1;
  const uint32_t fraction = bits & all_ones;
  const uint32_t exponent = (bits >> f.fraction_bits) & mask;
  Decoded d{};
  d.negative = (bits >> (f.fraction_bits + f.exponent_bits)) & 1;
  d.infinite = f.infinities && exponent == mask && fraction == 0;
  d.nan = exponent == mask && (f.infinities ? fraction != 0 : fraction == all_ones);
  d.significand = exponent == 0 ? (flush ? 0 : fraction) : fraction | 1u << f.fraction_bits;
  d.zero = d.significand == 0;
  d.exponent = static_cast<int>(std::max(exponent, 1u)) - static_cast<int>(mask >> 1);
  return d;
}

/// One term of the aligned sum: significand * 2^(exponent - fraction_bits).
struct Term {
  bool negative, zero;
  uint64_t significand;
  int exponent, fraction_bits;
};

/// |sum| * 2^unit truncated to fp32 (toward zero, subnormals kept); 2^128 and above is infinite.
uint32_t truncate_to_f32(const TensorCoreModel& model, bool negative, uint64_t magnitude, int unit) {
  const uint32_t sign = static_cast<uint32_t>(negative) << 31;
  const int leading = 63 - std::countl_zero(magnitude);
  const int exponent = leading + unit;
  if (exponent > 127) return sign | (model.clamp_overflow ? 0x7f7fffffu : 0x7f800000u);
  if (exponent < -126 && model.flush_results) return 0;
  const int last = std::max(exponent, -126) - 23;  // weight of the last bit kept
  const int shift = last - unit;
  const uint64_t kept = shift >= 64 ? 0 : shift >= 0 ? magnitude >> shift : magnitude << -shift;
  if (exponent < -126) return kept == 0 ? 0 : sign | static_cast<uint32_t>(kept);
  return sign | ((static_cast<uint32_t>(exponent + 126) << 23) + static_cast<uint32_t>(kept));
}

/// The result in the sum's format: f32 truncated, to 13 fraction bits where the rule says so; f16 rounded.
uint32_t finish(const TensorCoreModel& model, const SumRule& rule, Element sum, bool negative,
                uint64_t magnitude, int unit) {
  if (sum == Element::f16)
    return round_to_f16(
        std::ldexp(negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude), unit));
  const uint32_t word = truncate_to_f32(model, negative, magnitude, unit);
  if (!rule.short_sum) return word;
  const uint32_t kept = word & ~0x3ffu;
  return (kept & 0x7fffffffu) == 0 ? 0 : kept;
}

/// Every term cut toward zero at 2^-F of the largest exponent, then summed exactly and rounded once.
uint32_t aligned_sum(const TensorCoreModel& model, const SumRule& rule, Element sum_format, const Term* terms,
                     int count, bool all_negative) {
  const int F = rule.fraction_bits;
  int largest = rule.floor;
  for (int i = 0; i < count; i++)
    if (!terms[i].zero || model.zero_products_in_maximum) largest = std::max(largest, terms[i].exponent);
  int64_t sum = 0;
  for (int i = 0; i < count; i++) {
    if (terms[i].significand == 0) continue;  // its exponent took no part in `largest`
    const int shift = largest - terms[i].exponent + terms[i].fraction_bits - F;
    const uint64_t cut = shift >= 64  ? 0
                         : shift >= 0 ? terms[i].significand >> shift
                                      : terms[i].significand << -shift;
    sum += terms[i].negative ? -static_cast<int64_t>(cut) : static_cast<int64_t>(cut);
  }
  if (sum == 0) return model.negative_zero && all_negative ? 0x80000000u : 0;
  const uint64_t magnitude = sum < 0 ? -static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  return finish(model, rule, sum_format, sum < 0, magnitude, largest - F);
}

/// One step: up to 32 products and c.
uint32_t step(const TensorCoreModel& model, const SumRule& rule, const MatrixForm& form, int count,
              const uint32_t* a, const uint32_t* b, uint32_t c_bits) {
  const ElementFormat &fa = format_of(form.a), &fb = format_of(form.b), &fc = format_of(form.sum);
  const bool half = form.sum == Element::f16;
  std::array<Term, 33> terms;
  const Decoded c = decode_operand(fc, c_bits, model.flush_inputs);
  bool nan = c.nan, plus = c.infinite && !c.negative, minus = c.infinite && c.negative,
       all_negative = c.negative;
  terms[0] = {c.negative, c.zero, c.significand, c.exponent, fc.fraction_bits};
  for (int i = 0; i < count; i++) {
    const Decoded x = decode_operand(fa, a[i], model.flush_inputs),
                  y = decode_operand(fb, b[i], model.flush_inputs);
    const bool negative = x.negative != y.negative, infinite = x.infinite || y.infinite;
    nan |= x.nan || y.nan || (infinite && (x.zero || y.zero));
    plus |= infinite && !negative;
    minus |= infinite && negative;
    all_negative &= negative;
    terms[static_cast<size_t>(i + 1)] = {negative, x.zero || y.zero, x.significand * y.significand,
                                         x.exponent + y.exponent, fa.fraction_bits + fb.fraction_bits};
  }
  if (nan || (plus && minus)) return half ? kTensorCoreNanF16 : kTensorCoreNan;
  if (plus || minus) return half ? (plus ? 0x7c00u : 0xfc00u) : (plus ? 0x7f800000u : 0xff800000u);
  return aligned_sum(model, rule, form.sum, terms.data(), count + 1, all_negative);
}

uint32_t widened_dot(const TensorCoreModel& model, MatrixForm form, const uint32_t* a, const uint32_t* b,
                     uint32_t c) {
  std::array<uint32_t, 32> wide_a{}, wide_b{};
  for (int i = 0; i < form.k; i++) {
    const auto at = static_cast<size_t>(widened_place(form.k, i));
    wide_a[at] = widen_to_f16(form.a, a[i]);
    wide_b[at] = widen_to_f16(form.b, b[i]);
  }
  form.a = form.b = Element::f16;
  form.split = static_cast<uint8_t>(form.k / 2);
  return add_nearest(form.sum, dot(model, form, wide_a.data(), wide_b.data(), 0), c);
}

}  // namespace

const TensorCoreModel& tensor_core_model(std::string_view arch) {
  for (const TensorCoreModel& m : kModels)
    if (m.arch == arch) return m;
  std::string known;
  for (const TensorCoreModel& m : kModels) known += (known.empty() ? "" : ", ") + std::string(m.arch);
  throw BadInput("architecture '" + std::string(arch) +
                 "': no tensor-core arithmetic is known; choose one of " + known);
}

int first_architecture(const MatrixForm& form) {
  if (form.warpgroup || (form.a == Element::f64 && form.rows == 16)) return 90;
  return is_fp8(form.a) ? 89 : 80;
}

SumRule sum_rule(const TensorCoreModel& model, const MatrixForm& form) {
  const int floor = form.sum == Element::f16 ? model.floor_f16 : model.floor_f32;
  if (is_fp8(form.a)) {
    if (model.number >= 90 && !form.warpgroup) return {model.fraction_bits, form.k / 2, floor, false, true};
    return {model.fraction_bits_fp8, model.products_per_step_fp8, floor, form.sum == Element::f32};
  }
  const int most = form.a == Element::tf32 ? model.products_per_step_tf32 : model.products_per_step_16;
  return {model.fraction_bits, form.split ? std::min<int>(form.split, most) : most, floor};
}

uint32_t dot(const TensorCoreModel& model, const MatrixForm& form, const uint32_t* a, const uint32_t* b,
             uint32_t c) {
  const SumRule rule = sum_rule(model, form);
  if (rule.widened) return widened_dot(model, form, a, b, c);
  for (int i = 0; i < form.k; i += rule.products_per_step)
    c = step(model, rule, form, std::min<int>(rule.products_per_step, form.k - i), a + i, b + i, c);
  return c;
}

int widened_place(int k_count, int k) {
  const int pair = k / 2;
  return k_count / 2 * (pair & 1) + 2 * (pair >> 1) + (k & 1);
}

uint32_t widen_to_f16(Element e, uint32_t pattern) {
  if (e == Element::e5m2) return pattern << 8;  // the same exponent, eight fraction bits more
  if ((pattern & 0x7f) == 0x7f) return kTensorCoreNanF16;
  return static_cast<uint32_t>(encode(Dtype::fp16, value_of(e, pattern)));
}

uint32_t add_nearest(Element sum, uint32_t x, uint32_t y) {
  if (sum == Element::f16) {
    const double value = value_of(sum, x) + value_of(sum, y);  // exact: two f16 span less than 53 bits
    return std::isnan(value) ? kTensorCoreNanF16 : static_cast<uint32_t>(encode(Dtype::fp16, value));
  }
  const float value = std::bit_cast<float>(x) + std::bit_cast<float>(y);
  return std::isnan(value) ? kTensorCoreNan : std::bit_cast<uint32_t>(value);
}

uint32_t round_to_f16(double value) {
  const double magnitude = std::fabs(value);
  const uint32_t sign = value < 0 ? 0x8000u : 0;
  if (magnitude >= 65520) return sign | 0x7c00;  // half a unit above the largest number
  if (magnitude < 0x1p-14) {
    const auto units = static_cast<uint32_t>((magnitude * 0x1p24 + 0x1p52) - 0x1p52);  // to nearest even
    return units == 0 ? 0 : sign | units;
  }
  const auto bits = std::bit_cast<uint64_t>(magnitude);
  const uint64_t rounded = bits + ((uint64_t{1} << 41) - 1) + (bits >> 42 & 1);  // 42 fraction bits go
  return sign | static_cast<uint32_t>((rounded >> 42) - (uint64_t{1023 - 15} << 10));
}

}  // namespace assay::vm
