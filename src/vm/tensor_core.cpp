#include "src/vm/tensor_core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "src/numerics/bad_input.h"
#include "src/vm/tensor_core_warp.h"

namespace assay::vm {
namespace {

// Fraction bits kept, products per step and the exponent floor, measured on recorded results of each
// architecture
// ("Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004; sm_90 also against tests/data/mma_*.bin.gz).
constexpr std::array<TensorCoreModel, 3> kModels{{
    {"sm_80", 24, 8, 4, -132, -20},
    {"sm_89", 24, 8, 4, -132, -20},
    {"sm_90", 25, 16, 8, -133, -21},
}};

/// An operand as significand * 2^(exponent - fraction_bits); subnormals are not normalised.
struct Decoded {
  bool negative, zero, infinite, nan;
  uint64_t significand;
  int exponent;
};

Decoded decode_operand(const OperandLayout& f, uint32_t bits, bool flush) {
  bits >>= f.dropped_bits;
  const uint32_t mask = (1u << f.exponent_bits) - 1;
  const uint32_t fraction = bits & ((1u << f.fraction_bits) - 1);
  const uint32_t exponent = (bits >> f.fraction_bits) & mask;
  Decoded d{};
  d.negative = (bits >> (f.fraction_bits + f.exponent_bits)) & 1;
  d.infinite = exponent == mask && fraction == 0;
  d.nan = exponent == mask && fraction != 0;
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

/// Every term cut toward zero at 2^-F of the largest exponent, then summed exactly and truncated once.
uint32_t aligned_sum(const TensorCoreModel& model, const Term* terms, int count, bool all_negative) {
  const int F = model.fraction_bits;
  int largest = model.floor_f32;
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
  return truncate_to_f32(model, sum < 0, magnitude, largest - F);
}

/// One step: up to 16 products and c.
uint32_t step(const TensorCoreModel& model, const OperandLayout& f, int count, const uint32_t* a,
              const uint32_t* b, uint32_t c_bits) {
  std::array<Term, 17> terms;
  const Decoded c = decode_operand(kF32Operand, c_bits, model.flush_inputs);
  bool nan = c.nan, plus = c.infinite && !c.negative, minus = c.infinite && c.negative,
       all_negative = c.negative;
  terms[0] = {c.negative, c.zero, c.significand, c.exponent, kF32Operand.fraction_bits};
  for (int i = 0; i < count; i++) {
    const Decoded x = decode_operand(f, a[i], model.flush_inputs),
                  y = decode_operand(f, b[i], model.flush_inputs);
    const bool negative = x.negative != y.negative, infinite = x.infinite || y.infinite;
    nan |= x.nan || y.nan || (infinite && (x.zero || y.zero));
    plus |= infinite && !negative;
    minus |= infinite && negative;
    all_negative &= negative;
    terms[i + 1] = {negative, x.zero || y.zero, x.significand * y.significand, x.exponent + y.exponent,
                    2 * f.fraction_bits};
  }
  if (nan || (plus && minus)) return kTensorCoreNan;
  if (plus || minus) return plus ? 0x7f800000u : 0xff800000u;
  return aligned_sum(model, terms.data(), count + 1, all_negative);
}

}  // namespace

const OperandLayout& operand_layout(Dtype format) {
  static constexpr OperandLayout kBf16{7, 8, 0}, kF16{10, 5, 0}, kTf32{10, 8, 13};
  switch (format) {
    case Dtype::bf16:
      return kBf16;
    case Dtype::fp16:
      return kF16;
    case Dtype::tf32:
      return kTf32;
    default:
      throw BadInput("tensor core: no products of this operand format; bf16, fp16 and tf32 are known");
  }
}

int products_per_step(const TensorCoreModel& model, Dtype format) {
  return format == Dtype::tf32 ? model.products_per_step_tf32 : model.products_per_step_16;
}

const TensorCoreModel& tensor_core_model(std::string_view arch) {
  for (const TensorCoreModel& m : kModels)
    if (m.arch == arch) return m;
  std::string known;
  for (const TensorCoreModel& m : kModels) known += (known.empty() ? "" : ", ") + std::string(m.arch);
  throw BadInput("architecture '" + std::string(arch) +
                 "': no tensor-core arithmetic is known; choose one of " + known);
}

uint32_t dot_f32(const TensorCoreModel& model, Dtype format, int k, const uint32_t* a, const uint32_t* b,
                 uint32_t c) {
  const OperandLayout& f = operand_layout(format);
  const int per_step = products_per_step(model, format);
  for (int i = 0; i < k; i += per_step) c = step(model, f, std::min(per_step, k - i), a + i, b + i, c);
  return c;
}

}  // namespace assay::vm
