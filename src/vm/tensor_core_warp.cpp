#include "src/vm/tensor_core_warp.h"

#include <algorithm>
#include <cstring>

namespace assay::vm {
namespace {

// Eight columns of one output row, as eight lanes. The compiler lowers the type where the target has no such
// vector; the operations are exact integers, so every target gives the same bits.
using Lanes = int32_t __attribute__((vector_size(32), may_alias));
using Quad = int32_t __attribute__((vector_size(16)));
using Wide = int64_t __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(32)));

constexpr int kZeroExponent = -4096;  // a zero operand: far below every floor, its significand is 0

/// Row-major operands of one warp-wide instruction, first as words, then decoded: value = significand *
/// 2^(exponent - fraction bits), sign inside the significand. `special` marks rows of A and columns of B with
/// an Inf or a NaN.
struct Fragments {
  alignas(32) int32_t a_word[16 * 16], a_significand[16 * 16], a_exponent[16 * 16];
  alignas(32) int32_t b_word[16 * 8], b_significand[16 * 8], b_exponent[16 * 8];
  alignas(32) int32_t c_word[16 * 8], d_word[16 * 8];
};

/// PTX ISA, "Matrix fragments for mma.m16n8k16", ".m16n8k8" and ".m16n8k4": lane = 4 g + t. Register r of A
/// holds row g + 8 (r mod 2) at columns `span` (r div 2) + ..., register r of B column g at rows `span` r +
/// ...; the four lanes of one g hold `span` neighbours, one (tf32) or two (16 bits) each.
[[gnu::always_inline]] inline void gather_words(int k, const uint32_t (*a)[32], const uint32_t (*b)[32],
                                                Fragments& f) {
  for (int r = 0; r < k / 2; r++)
    for (int g = 0; g < 8; g++)
      for (int t = 0; t < 4; t++)
        f.a_word[(g + 8 * (r & 1)) * k + 4 * (r >> 1) + t] = static_cast<int32_t>(a[r][4 * g + t]);
  for (int r = 0; r < k / 4; r++)
    for (int t = 0; t < 4; t++)
      for (int g = 0; g < 8; g++) f.b_word[(4 * r + t) * 8 + g] = static_cast<int32_t>(b[r][4 * g + t]);
}

[[gnu::always_inline]] inline void gather_halves(int k, const uint32_t (*a)[32], const uint32_t (*b)[32],
                                                 Fragments& f) {
  for (int r = 0; r < k / 4; r++)
    for (int g = 0; g < 8; g++) {
      uint16_t row[8];
      std::memcpy(row, &a[r][4 * g], sizeof row);
      int32_t* to = &f.a_word[(g + 8 * (r & 1)) * k + 8 * (r >> 1)];
      for (int i = 0; i < 8; i++) to[i] = row[i];
    }
  for (int r = 0; r < k / 8; r++)
    for (int t = 0; t < 4; t++)
      for (int g = 0; g < 8; g++) {
        const uint32_t word = b[r][4 * g + t];
        f.b_word[(8 * r + 2 * t) * 8 + g] = static_cast<int32_t>(word & 0xffff);
        f.b_word[(8 * r + 2 * t + 1) * 8 + g] = static_cast<int32_t>(word >> 16);
      }
}

/// Register r of C and D holds row g + 8 (r div 2), column 2 t + (r mod 2): registers 2 p and 2 p + 1
/// interleave.
[[gnu::always_inline]] inline void gather_sum(const uint32_t (*c)[32], Fragments& f) {
  for (int p = 0; p < 2; p++)
    for (int lane = 0; lane < 32; lane++) {
      f.c_word[64 * p + 2 * lane] = static_cast<int32_t>(c[2 * p][lane]);
      f.c_word[64 * p + 2 * lane + 1] = static_cast<int32_t>(c[2 * p + 1][lane]);
    }
}

[[gnu::always_inline]] inline void scatter(const Fragments& f, uint32_t (*d)[32]) {
  for (int p = 0; p < 2; p++)
    for (int lane = 0; lane < 32; lane++) {
      d[2 * p][lane] = static_cast<uint32_t>(f.d_word[64 * p + 2 * lane]);
      d[2 * p + 1][lane] = static_cast<uint32_t>(f.d_word[64 * p + 2 * lane + 1]);
    }
}

[[gnu::target_clones("avx2", "default")]] void gather(Dtype format, int k, const uint32_t (*a)[32],
                                                      const uint32_t (*b)[32], const uint32_t (*c)[32],
                                                      Fragments& f) {
  gather_sum(c, f);
  if (format == Dtype::tf32) return k == 8 ? gather_words(8, a, b, f) : gather_words(k, a, b, f);
  return k == 16 ? gather_halves(16, a, b, f) : gather_halves(k, a, b, f);
}

/// Decodes `count` words, a multiple of 8; returns true where one of them is an Inf or a NaN.
[[gnu::always_inline]] inline bool decode_words(const OperandLayout& f, int count, const int32_t* word,
                                                int32_t* significand, int32_t* exponent) {
  const int32_t dropped = f.dropped_bits, fraction_bits = f.fraction_bits,
                sign_bit = f.fraction_bits + f.exponent_bits;
  const int32_t mask = (1 << f.exponent_bits) - 1, hidden = 1 << fraction_bits, bias = mask >> 1;
  const Lanes zero{};
  Lanes special = zero;
  for (int i = 0; i < count; i += 8) {
    const Lanes w = *reinterpret_cast<const Lanes*>(word + i) >> dropped;
    const Lanes e = (w >> fraction_bits) & mask;
    const Lanes s = (w & (hidden - 1)) | (e != 0 ? zero + hidden : zero);
    const Lanes negative = -((w >> sign_bit) & 1);
    *reinterpret_cast<Lanes*>(significand + i) = (s ^ negative) - negative;
    *reinterpret_cast<Lanes*>(exponent + i) = s == 0 ? zero + kZeroExponent : (e != 0 ? e : zero + 1) - bias;
    special |= e == mask;
  }
  int32_t any = 0;
  for (int n = 0; n < 8; n++) any |= special[n];
  return any != 0;
}

/// Bits of a double truncated toward zero to fp32; subnormals are kept, 2^128 and above is infinite.
inline int32_t truncate_double(int64_t signed_bits) {
  const auto bits = static_cast<uint64_t>(signed_bits);
  const uint32_t sign = static_cast<uint32_t>(bits >> 32) & 0x80000000u;
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  uint32_t magnitude = 0;
  if (exponent >= -126 && exponent <= 127)
    magnitude =
        (static_cast<uint32_t>(exponent + 127) << 23) | (static_cast<uint32_t>(bits >> 29) & 0x7fffff);
  else if (exponent > 127)
    magnitude = 0x7f800000u;
  else if (exponent >= -149)
    magnitude =
        static_cast<uint32_t>(((bits & 0xfffffffffffffull) | 0x10000000000000ull) >> (-97 - exponent));
  return static_cast<int32_t>(magnitude == 0 ? 0 : sign | magnitude);
}

/// (sums[0] + sums[1]) * 2^unit truncated to fp32: through doubles, which hold the 33-bit sums and the scaled
/// values (unit in [-158, 231]) exactly.
[[gnu::always_inline]] inline void truncate_lanes(const Lanes (&sums)[2], const Lanes& unit,
                                                  int32_t* d_word) {
  constexpr int64_t kMagnitude = 0x7fffffffffffffff;
  for (int half = 0; half < 2; half++) {
    Quad low, high, scale;
    std::memcpy(&low, reinterpret_cast<const char*>(&sums[0]) + 16 * half, 16);
    std::memcpy(&high, reinterpret_cast<const char*>(&sums[1]) + 16 * half, 16);
    std::memcpy(&scale, reinterpret_cast<const char*>(&unit) + 16 * half, 16);
    const Wide scale_bits = __builtin_convertvector(scale + 1023, Wide) << 52;
    const Doubles value = (__builtin_convertvector(low, Doubles) + __builtin_convertvector(high, Doubles)) *
                          (Doubles)scale_bits;
    const Wide bits = (Wide)value, magnitude = bits & kMagnitude;
    // All zero or normal in fp32: the exponent is moved from bias 1023 to 127 and the fraction cut, in one
    // shift.
    const Wide common = (magnitude == 0) | ((magnitude >= (897ll << 52)) & (magnitude < (1151ll << 52)));
    if ((common[0] & common[1] & common[2] & common[3]) != 0) {
      const Wide moved = ((magnitude >> 29) - (896ll << 23)) | ((bits >> 32) & 0x80000000ll);
      const Quad words = __builtin_convertvector(magnitude == 0 ? Wide{} : moved, Quad);
      std::memcpy(d_word + 4 * half, &words, 16);
    } else {
      for (int n = 0; n < 4; n++) d_word[4 * half + n] = truncate_double(bits[n]);
    }
  }
}

/// One step over `count` products (at most 16) of row `a` for eight columns: c_word -> d_word.
template <int count>
[[gnu::always_inline]] inline void row_step(const TensorCoreModel& model, const OperandLayout& f,
                                            const int32_t* a_significand, const int32_t* a_exponent,
                                            const int32_t* b_significand, const int32_t* b_exponent,
                                            const int32_t* c_word, int32_t* d_word) {
  alignas(32) int32_t c_significand[8], c_exponent[8];
  decode_words(kF32Operand, 8, c_word, c_significand, c_exponent);
  const auto* c_exponents = reinterpret_cast<const Lanes*>(c_exponent);
  const auto* c_significands = reinterpret_cast<const Lanes*>(c_significand);
  const auto* b_exponents = reinterpret_cast<const Lanes*>(b_exponent);
  const auto* b_significands = reinterpret_cast<const Lanes*>(b_significand);
  const Lanes zero{};
  Lanes largest = zero + model.floor_f32;
  largest = c_exponents[0] > largest ? c_exponents[0] : largest;
#pragma GCC unroll 16
  for (int i = 0; i < count; i++) {
    const Lanes e = b_exponents[i] + a_exponent[i];
    largest = e > largest ? e : largest;
  }
  // |product| < 2^(2p), p = fraction bits + 1, moved up to F fraction bits: below 2^(F + 2) <= 2^27. Eight of
  // them stay below 2^30, so two 32-bit sums of eight and c < 2^26 are exact; their sum is taken in 64 bits.
  const int up = model.fraction_bits - 2 * f.fraction_bits;
  Lanes sums[2] = {zero, zero};
#pragma GCC unroll 16
  for (int i = 0; i < count; i++) {
    const Lanes product = b_significands[i] * a_significand[i];
    const Lanes negative = product >> 31;
    Lanes shift = largest - (b_exponents[i] + a_exponent[i]);
    shift = shift > 31 ? zero + 31 : shift;
    const Lanes cut = (((product ^ negative) - negative) << up) >> shift;
    sums[i >> 3] += (cut ^ negative) - negative;
  }
  const Lanes c_negative = c_significands[0] >> 31;
  Lanes shift = largest - c_exponents[0];
  shift = shift > 31 ? zero + 31 : shift;
  const Lanes c_cut = (((c_significands[0] ^ c_negative) - c_negative)
                       << (model.fraction_bits - kF32Operand.fraction_bits)) >>
                      shift;
  sums[0] += (c_cut ^ c_negative) - c_negative;
  truncate_lanes(sums, largest - model.fraction_bits, d_word);
}

inline bool is_special(int32_t f32_word) {
  return (f32_word & 0x7f800000) == 0x7f800000;
}

/// All rows by vectors. Returns false where an Inf or a NaN takes part: the caller then goes element by
/// element.
template <int k, int per_step>
[[gnu::always_inline]] inline bool sum_rows(const TensorCoreModel& model, const OperandLayout& f,
                                            Fragments& m) {
  bool special = decode_words(f, 16 * k, m.a_word, m.a_significand, m.a_exponent);
  special |= decode_words(f, k * 8, m.b_word, m.b_significand, m.b_exponent);
  for (int i = 0; i < 128; i++) special |= is_special(m.c_word[i]);
  if (special) return false;
  for (int row = 0; row < 16; row++) {
    const int32_t* c = m.c_word + row * 8;
    int32_t* d = m.d_word + row * 8;
    for (int i = 0; i < k; i += per_step) {
      row_step<per_step>(model, f, m.a_significand + row * k + i, m.a_exponent + row * k + i,
                         m.b_significand + i * 8, m.b_exponent + i * 8, c, d);
      c = d;
      if (i + per_step < k)
        for (int n = 0; n < 8; n++)
          if (is_special(d[n])) return false;  // an overflow that the next step takes as its c
    }
  }
  return true;
}

/// The shapes that exist; any other goes element by element.
[[gnu::target_clones("avx2", "default")]] bool sum_rows(const TensorCoreModel& model, const OperandLayout& f,
                                                        int k, int per_step, Fragments& m) {
  if (k == 16 && per_step == 16) return sum_rows<16, 16>(model, f, m);
  if (k == 16 && per_step == 8) return sum_rows<16, 8>(model, f, m);
  if (k == 8 && per_step >= 8) return sum_rows<8, 8>(model, f, m);
  if (k == 8 && per_step == 4) return sum_rows<8, 4>(model, f, m);
  if (k == 4 && per_step >= 4) return sum_rows<4, 4>(model, f, m);
  return false;
}

void sum_elements(const TensorCoreModel& model, Dtype format, int k, Fragments& m) {
  for (int n = 0; n < 8; n++) {
    uint32_t column[16];
    for (int i = 0; i < k; i++) column[i] = static_cast<uint32_t>(m.b_word[i * 8 + n]);
    for (int row = 0; row < 16; row++)
      m.d_word[row * 8 + n] = static_cast<int32_t>(
          dot_f32(model, format, k, reinterpret_cast<const uint32_t*>(m.a_word + row * k), column,
                  static_cast<uint32_t>(m.c_word[row * 8 + n])));
  }
}

}  // namespace

void mma_m16n8_f32(const TensorCoreModel& model, Dtype format, int k, const uint32_t (*a)[32],
                   const uint32_t (*b)[32], const uint32_t (*c)[32], uint32_t (*d)[32]) {
  Fragments m;
  gather(format, k, a, b, c, m);
  const bool plain = !(model.zero_products_in_maximum || model.flush_inputs || model.flush_results ||
                       model.negative_zero || model.clamp_overflow);
  if (!plain || !sum_rows(model, operand_layout(format), k, products_per_step(model, format), m))
    sum_elements(model, format, k, m);
  scatter(m, d);
}

}  // namespace assay::vm
