#include "src/base/vm/tensor_core_warp.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace {

// Eight rows of one output column, as eight lanes. The compiler lowers the type where the target has no such
// vector; the operations are exact integers, so every target gives the same bits.
using Lanes = int32_t __attribute__((vector_size(32), may_alias));
using Floats = float __attribute__((vector_size(32), may_alias));
using Quad = int32_t __attribute__((vector_size(16)));
using Wide = int64_t __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(32)));

constexpr int kZeroExponent = -4096;  // a zero operand: far below every floor, its significand is 0

/// Element i of a register: the pattern of a float, the value of an integer.
int32_t element_of(Element e, uint32_t word, int i) {
  const ElementFormat& f = format_of(e);
  const uint32_t pattern = f.bits == 32 ? word : word >> (i * f.bits) & ((1u << f.bits) - 1);
  return f.integer && f.bits < 32 ? static_cast<int32_t>(value_of(e, pattern))
                                  : static_cast<int32_t>(pattern);
}

/// Decodes `count` words, a multiple of 8; returns true where one of them is an Inf or a NaN. Significands,
/// of at most 24 bits, are exact floats.
[[gnu::always_inline]] inline bool decode_words(const ElementFormat& f, int count, const int32_t* word,
                                                float* significand, int32_t* exponent) {
  const int32_t dropped = f.dropped_bits, fraction_bits = f.fraction_bits,
                sign_bit = f.fraction_bits + f.exponent_bits;
  const int32_t mask = (1 << f.exponent_bits) - 1, hidden = 1 << fraction_bits, bias = mask >> 1;
  const int32_t largest_number = f.infinities ? mask << fraction_bits : (mask << fraction_bits) + hidden - 1;
  const int32_t magnitude = (mask << fraction_bits) | (hidden - 1);
  const Lanes zero{};
  Lanes special = zero;
  for (int i = 0; i < count; i += 8) {
    const Lanes w = *reinterpret_cast<const Lanes*>(word + i) >> dropped;
    const Lanes e = (w >> fraction_bits) & mask;
    const Lanes s = (w & (hidden - 1)) | (e != 0 ? zero + hidden : zero);
    const Lanes negative = -((w >> sign_bit) & 1);
    *reinterpret_cast<Floats*>(significand + i) = __builtin_convertvector((s ^ negative) - negative, Floats);
    *reinterpret_cast<Lanes*>(exponent + i) = s == 0 ? zero + kZeroExponent : (e != 0 ? e : zero + 1) - bias;
    special |= (w & magnitude) >= largest_number;
  }
  int32_t any = 0;
  for (int n = 0; n < 8; n++) any |= special[n];
  return any != 0;
}

/// (sums[0] + sums[1]) * 2^unit, exact in doubles: 33-bit sums, unit in [-158, 231].
[[gnu::always_inline]] inline void exact_sums(const Lanes (&sums)[2], const Lanes& unit, int half,
                                              Doubles& value) {
  const auto quad = [half](const Lanes& x) {
    return half ? __builtin_shufflevector(x, x, 4, 5, 6, 7) : __builtin_shufflevector(x, x, 0, 1, 2, 3);
  };
  const Quad low = quad(sums[0]), high = quad(sums[1]), scale = quad(unit);
  const Wide scale_bits = __builtin_convertvector(scale + 1023, Wide) << 52;
  value =
      (__builtin_convertvector(low, Doubles) + __builtin_convertvector(high, Doubles)) * (Doubles)scale_bits;
}

constexpr int64_t kMagnitude = 0x7fffffffffffffff;

/// Patterns with the signs of the values; +0 of a zero.
[[gnu::always_inline]] inline Quad with_signs(Quad magnitude, const Doubles& value, int32_t sign) {
  const Quad negative = __builtin_convertvector((Wide)value < 0, Quad);
  return magnitude == 0 ? magnitude : magnitude | (negative & sign);
}

/// Patterns of fp32, cut toward zero; subnormals are kept, 2^128 and above is infinite.
[[gnu::always_inline]] inline Quad truncated(const Doubles& value) {
  const Wide magnitude = (Wide)value & kMagnitude;
  // The exponent is moved from bias 1023 to 127 and the fraction cut, in one shift; what a subnormal number
  // is in units of the smallest one is its pattern.
  const Quad normal = __builtin_convertvector((magnitude >> 29) - (896ll << 23), Quad),
             subnormal = __builtin_convertvector((Doubles)magnitude * 0x1p149, Quad),
             exponent = __builtin_convertvector(magnitude >> 52, Quad) - 1023;
  const Quad bounded = exponent > 127 ? Quad{} + 0x7f800000 : normal;
  return with_signs(exponent < -126 ? subnormal : bounded, value, static_cast<int32_t>(0x80000000u));
}

/// Patterns of fp16, rounded to nearest even as round_to_f16 rounds.
[[gnu::always_inline]] inline Quad rounded(const Doubles& value) {
  const Wide magnitude = (Wide)value & kMagnitude, field = magnitude >> 52, least = Wide{} + (1023 - 14);
  // Beside 1.5 2^(52 + e) a double has units of 2^e: those of fp16, 10 places below the number.
  const Doubles coarse = (Doubles)(((field > least ? field : least) + (52 - 10)) << 52 | 1ll << 51);
  const Doubles whole = ((Doubles)magnitude + coarse) - coarse;
  const Wide bits = (Wide)whole;
  const Quad normal = __builtin_convertvector((bits >> 42) - (int64_t{1023 - 15} << 10), Quad),
             subnormal = __builtin_convertvector(whole * 0x1p24, Quad),
             exponent = __builtin_convertvector(bits >> 52, Quad) - 1023;
  const Quad bounded = exponent > 15 ? Quad{} + 0x7c00 : normal;
  return with_signs(exponent < -14 ? subnormal : bounded, value, 0x8000);
}

/// The sums in the format that the rule asks for.
[[gnu::always_inline]] inline void finish_lanes(const SumRule& rule, bool f16, const Lanes (&sums)[2],
                                                const Lanes& unit, int32_t* d_word) {
  for (int half = 0; half < 2; half++) {
    Doubles value;
    exact_sums(sums, unit, half, value);
    const Quad words = f16 ? rounded(value) : truncated(value);
    std::memcpy(d_word + 4 * half, &words, sizeof words);
  }
  auto& d = *reinterpret_cast<Lanes*>(d_word);
  if (rule.short_sum) d = (d & 0x7ffffc00) == 0 ? Lanes{} : d & ~0x3ff;
}

/// `number` times 2^up, cut toward zero. It has at most 24 bits, so that times a power of two it is an exact
/// float, and what is below 1 is cut whole.
[[gnu::always_inline]] inline Lanes cut(Floats number, Lanes up) {
  const Lanes biased = up + 127;
  const Lanes scale = (biased > 0 ? biased : Lanes{}) << 23;
  return __builtin_convertvector(number * (Floats)scale, Lanes);
}

struct Formats {
  const ElementFormat &a, &b, &sum;
};

/// Classes of `count` words, a multiple of 8: zero, one for a finite number, an infinity, a NaN, with their
/// signs. A sum of products of classes is a NaN or an infinity where that of the operands is.
[[gnu::always_inline]] inline void classify(const ElementFormat& f, int count, const int32_t* word,
                                            float* classes) {
  const int32_t infinity = ((1 << f.exponent_bits) - 1) << f.fraction_bits,
                magnitudes = infinity | ((1 << f.fraction_bits) - 1),
                least_infinity = f.infinities ? infinity : magnitudes,
                least_nan = f.infinities ? infinity + 1 : magnitudes;
  const int32_t sign = f.fraction_bits + f.exponent_bits;
  const Lanes one = Lanes{} + std::bit_cast<int32_t>(1.0f), nan = Lanes{} + 0x7fc00000;
  for (int i = 0; i < count; i += 8) {
    const Lanes w = *reinterpret_cast<const Lanes*>(word + i) >> f.dropped_bits, magnitude = w & magnitudes;
    Lanes made = magnitude == 0 ? Lanes{} : one;
    made = magnitude >= least_infinity ? Lanes{} + 0x7f800000 : made;
    made = magnitude >= least_nan ? nan : made;
    *reinterpret_cast<Lanes*>(classes + i) = made | (w >> sign) << 31;
  }
}

/// One column of B for eight rows of A: element i of all of them lies at 8 i, or, where each row has `own`
/// ones (of a sparse A), at 16 i and behind it.
template <bool own>
struct ColumnOfB {
  const float* significand;
  const int32_t* exponent;
  const float* classes;
  [[gnu::always_inline]] static Lanes at(const int32_t* of, int i) {
    if constexpr (own)
      return *reinterpret_cast<const Lanes*>(of + 16 * i);
    else
      return Lanes{} + of[8 * i];
  }
  [[gnu::always_inline]] static Floats at(const float* of, int i) {
    return (Floats)at(reinterpret_cast<const int32_t*>(of), i);
  }
  /// From element i and of row `row` on.
  ColumnOfB from(int i, int row) const {
    const int by = own ? 16 * i + row : 8 * i;
    return {significand + by, exponent + by, classes + by};
  }
};

/// Overrides the elements of d whose sum holds a NaN or an Inf. `a` are classes of eight rows.
template <int count, bool own>
[[gnu::always_inline]] inline void override_specials(const Formats& f, const float* a,
                                                     const ColumnOfB<own>& b, const int32_t* c_word,
                                                     int32_t* d_word) {
  alignas(32) float c[8];
  classify(f.sum, 8, c_word, c);
  Floats sum = *reinterpret_cast<const Floats*>(c);
#pragma GCC unroll 32
  for (int i = 0; i < count; i++) sum += *reinterpret_cast<const Floats*>(a + 16 * i) * b.at(b.classes, i);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const bool half = f.sum.bits == 16;
  const Lanes none{}, plus = none + (half ? 0x7c00 : 0x7f800000);
  const auto sign = static_cast<int32_t>(half ? 0x8000u : 0x80000000u);
  Lanes d = *reinterpret_cast<const Lanes*>(d_word);
  d = sum == -infinity ? plus | sign : d;
  d = sum == infinity ? plus : d;
  d = sum != sum ? none + static_cast<int32_t>(half ? kTensorCoreNanF16 : kTensorCoreNan) : d;
  *reinterpret_cast<Lanes*>(d_word) = d;
}

/// One step over `count` products (at most 32) of eight rows `a` for one column: c_word -> d_word.
template <int count, bool own>
[[gnu::always_inline]] inline void column_step(const SumRule& rule, const Formats& f,
                                               const float* a_significand, const int32_t* a_exponent,
                                               const ColumnOfB<own>& b, const int32_t* c_word,
                                               int32_t* d_word) {
  alignas(32) float c_significand[8];
  alignas(32) int32_t c_exponent[8];
  decode_words(f.sum, 8, c_word, c_significand, c_exponent);
  const Lanes c_exponents = *reinterpret_cast<const Lanes*>(c_exponent);
  const auto exponents = [&](int i) {
    return *reinterpret_cast<const Lanes*>(a_exponent + 16 * i) + b.at(b.exponent, i);
  };
  const Lanes zero{};
  Lanes largest = zero + rule.floor;
  largest = c_exponents > largest ? c_exponents : largest;
#pragma GCC unroll 32
  for (int i = 0; i < count; i++) {
    const Lanes e = exponents(i);
    largest = e > largest ? e : largest;
  }
  // |product| < 2^(2 + its fraction bits), moved to F fraction bits: below 2^(F + 2) <= 2^27. Eight of them
  // stay below 2^30 (F = 25 has at most sixteen), so two 32-bit sums of eight and c < 2^26 are exact; their
  // sum is taken in doubles. With 32 products F is 13.
  const Lanes unit = largest - rule.fraction_bits, up = -f.a.fraction_bits - f.b.fraction_bits - unit;
  Lanes sums[2] = {zero, zero};
#pragma GCC unroll 32
  for (int i = 0; i < count; i++)
    sums[(i >> 3) & 1] += cut(
        *reinterpret_cast<const Floats*>(a_significand + 16 * i) * b.at(b.significand, i), up + exponents(i));
  sums[0] += cut(*reinterpret_cast<const Floats*>(c_significand), c_exponents - f.sum.fraction_bits - unit);
  finish_lanes(rule, f.sum.bits == 16, sums, unit, d_word);
}

/// Whether an Inf or a NaN is among `count` words, a multiple of 8.
[[gnu::always_inline]] inline bool any_special(const ElementFormat& sum, int count, const int32_t* word) {
  const int32_t mask = ((1 << sum.exponent_bits) - 1) << sum.fraction_bits;
  Lanes special{};
  for (int i = 0; i < count; i += 8) special |= (*reinterpret_cast<const Lanes*>(word + i) & mask) == mask;
  int32_t any = 0;
  for (int n = 0; n < 8; n++) any |= special[n];
  return any != 0;
}

/// Column n. `special`: an Inf or a NaN takes part. False: a step overflowed and the next one takes its Inf;
/// the caller comes back with `special`.
template <int k, int per_step, bool own>
[[gnu::always_inline]] inline bool sum_column(const SumRule& rule, const Formats& f, bool special, int n,
                                              const ColumnOfB<own>& b, MatrixTile& m) {
  for (int row = 0; row < 16; row += 8) {
    alignas(32) int32_t between[2][8];
    const int32_t* c = m.c + 16 * n + row;
    for (int i = 0; i < k; i += per_step) {
      const bool last = i + per_step >= k;
      int32_t* d = last ? m.d + 16 * n + row : between[i / per_step % 2];
      column_step<per_step>(rule, f, m.a_significand + 16 * i + row, m.a_exponent + 16 * i + row,
                            b.from(i, row), c, d);
      if (special) override_specials<per_step>(f, m.a_class + 16 * i + row, b.from(i, row), c, d);
      c = d;
      if (!special && !last && any_special(f.sum, 8, d)) return false;
    }
  }
  return true;
}

/// The columns of B that the rows of a sparse A have, [i][row]; null: A has all.
using Kept = const uint8_t (*)[16];

template <int k, int per_step>
[[gnu::always_inline]] inline bool sum_columns(const SumRule& rule, const Formats& f, Kept kept,
                                               MatrixTile& m) {
  if (m.a_is_new) {
    m.a_special = decode_words(f.a, 16 * k, m.a, m.a_significand, m.a_exponent);
    classify(f.a, 16 * k, m.a, m.a_class);
  }
  m.a_is_new = false;
  bool special = m.a_special || any_special(f.sum, 128, m.c);
  alignas(32) float classes[k * 16];
  const auto decode_b = [&](int count, const int32_t* word, float* significand, int32_t* exponent) {
    special |= decode_words(f.b, count, word, significand, exponent);
    classify(f.b, count, word, classes);
  };
  if (!kept) decode_b(k * 8, m.b, m.b_significand, m.b_exponent);
  for (int n = 0; n < 8; n++) {
    if (!kept) {
      const ColumnOfB<false> b{m.b_significand + n, m.b_exponent + n, classes + n};
      for (bool done = false; !done; special |= !done)
        done = sum_column<k, per_step>(rule, f, special, n, b, m);
      continue;
    }
    alignas(32) int32_t word[k * 16], exponent[k * 16];
    alignas(32) float significand[k * 16];
    for (int i = 0; i < k; i++)
      for (int row = 0; row < 16; row++) word[i * 16 + row] = m.b[kept[i][row] * 8 + n];
    decode_b(k * 16, word, significand, exponent);
    const ColumnOfB<true> b{significand, exponent, classes};
    for (bool done = false; !done; special |= !done)
      done = sum_column<k, per_step>(rule, f, special, n, b, m);
  }
  return true;
}

/// The shapes that exist; any other goes element by element.
[[gnu::target_clones("arch=x86-64-v4", "avx2", "default")]] bool sum_columns(const SumRule& rule,
                                                                             const Formats& f, int k,
                                                                             Kept kept, MatrixTile& m) {
  const int per_step = rule.products_per_step;
  if (k == 16 && per_step >= 16) return sum_columns<16, 16>(rule, f, kept, m);
  if (k == 16 && per_step == 8) return sum_columns<16, 8>(rule, f, kept, m);
  if (k == 8 && per_step >= 8) return sum_columns<8, 8>(rule, f, kept, m);
  if (k == 8 && per_step == 4) return sum_columns<8, 4>(rule, f, kept, m);
  if (k == 4 && per_step >= 4) return sum_columns<4, 4>(rule, f, kept, m);
  if (k == 32 && per_step == 32) return sum_columns<32, 32>(rule, f, kept, m);
  if (k == 32 && per_step == 16) return sum_columns<32, 16>(rule, f, kept, m);
  return false;
}

void sum_elements(const TensorCoreModel& model, const MatrixForm& form, Kept kept, MatrixTile& m) {
  for (int row = 0; row < 16; row++) {
    uint32_t of_row[MatrixTile::most_k];
    for (int i = 0; i < form.k; i++) of_row[i] = static_cast<uint32_t>(m.a[i * 16 + row]);
    for (int n = 0; n < 8; n++) {
      uint32_t column[MatrixTile::most_k];
      for (int i = 0; i < form.k; i++)
        column[i] = static_cast<uint32_t>(m.b[(kept ? kept[i][row] : i) * 8 + n]);
      m.d[n * 16 + row] =
          static_cast<int32_t>(dot(model, form, of_row, column, static_cast<uint32_t>(m.c[n * 16 + row])));
    }
  }
}

/// PTX ISA, mma with integers: exact, wrapping around in 32 bits or clamped to them.
[[gnu::target_clones("avx2", "default")]] void multiply_integers(const MatrixForm& form, Kept kept,
                                                                 MatrixTile& m) {
  for (int n = 0; n < 8; n++) {
    // |sum of products| <= 64 * 2^16: exact in 32 bits
    Lanes sums[2] = {};
    const auto add = [&](int i, Lanes first, Lanes second) {
      const auto* a = reinterpret_cast<const Lanes*>(m.a + i * 16);
      sums[0] += a[0] * first, sums[1] += a[1] * second;
    };
    for (int i = 0; i < form.k; i++)
      if (kept) {
        alignas(32) int32_t b[16];
        for (int row = 0; row < 16; row++) b[row] = m.b[kept[i][row] * 8 + n];
        add(i, *reinterpret_cast<const Lanes*>(b), *reinterpret_cast<const Lanes*>(b + 8));
      } else {
        const Lanes b = Lanes{} + m.b[i * 8 + n];
        add(i, b, b);
      }
    for (int row = 0; row < 16; row++) {
      int64_t exact = int64_t{m.c[n * 16 + row]} + sums[row / 8][row % 8];
      if (form.saturate) exact = std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX);
      m.d[n * 16 + row] = static_cast<int32_t>(exact);
    }
  }
}

void multiply(const TensorCoreModel& model, const MatrixForm& form, Kept kept, MatrixTile& m);

/// fp8 by way of f16 (SumRule::widened).
void multiply_widened(const TensorCoreModel& model, MatrixForm form, Kept kept, MatrixTile& m) {
  MatrixTile wide;
  uint8_t wide_kept[MatrixTile::most_k][16];
  for (int i = 0; i < form.k; i++) {
    const int at = widened_place(form.k, i);
    for (int row = 0; row < 16; row++)
      wide.a[at * 16 + row] =
          static_cast<int32_t>(widen_to_f16(form.a, static_cast<uint32_t>(m.a[i * 16 + row])));
    if (kept) std::copy_n(kept[i], 16, wide_kept[at]);
    for (int n = 0; n < 8 && !kept; n++)
      wide.b[at * 8 + n] = static_cast<int32_t>(widen_to_f16(form.b, static_cast<uint32_t>(m.b[i * 8 + n])));
  }
  for (int i = 0; i < 2 * form.k * 8 && kept; i++)
    wide.b[i] = static_cast<int32_t>(widen_to_f16(form.b, static_cast<uint32_t>(m.b[i])));
  std::fill_n(wide.c, 128, 0);
  form.a = form.b = Element::f16;
  form.split = static_cast<uint8_t>(form.k / 2);
  multiply(model, form, kept ? wide_kept : nullptr, wide);
  for (int i = 0; i < 128; i++)
    m.d[i] = static_cast<int32_t>(
        add_nearest(form.sum, static_cast<uint32_t>(wide.d[i]), static_cast<uint32_t>(m.c[i])));
}

bool plain(const TensorCoreModel& model) {
  return !(model.zero_products_in_maximum || model.flush_inputs || model.flush_results ||
           model.negative_zero || model.clamp_overflow);
}

}  // namespace

void load_a(const MatrixForm& form, const uint32_t* const* a, MatrixTile& m) {
  const ElementFormat& f = format_of(form.a);
  m.a_changed();
  const int per = 32 / f.bits, lines = form.rows == 8 ? 8 : 16, registers = lines * form.k / (32 * per);
  if (form.rows != 8 && f.bits >= 16) {
    const auto spread = per == 1 ? lane_kit().spread_words : lane_kit().spread_halves;
    for (int r = 0; r < registers; r++) spread(a[r], m.a + (r >> 1) * 4 * per * 16 + 8 * (r & 1), 16);
  } else {
    std::fill_n(m.a, 16 * form.k, 0);
    for (int r = 0; r < registers; r++)
      for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < per; i++) {
          const FragmentPlace at = a_place(form.rows, per, r, lane, i);
          m.a[at.column * 16 + at.row] = element_of(form.a, a[r][lane], i);
        }
  }
  if (form.negate_a)
    for (int i = 0; i < 16 * form.k; i++) m.a[i] ^= static_cast<int32_t>(1u << (f.bits - 1));
}

void load_b(const MatrixForm& form, const uint32_t* const* b, MatrixTile& m) {
  const ElementFormat& f = format_of(form.b);
  const int per = 32 / f.bits, registers = form.k / (4 * per);
  if (f.bits >= 16) {
    const auto spread = per == 1 ? lane_kit().spread_words : lane_kit().spread_halves;
    for (int r = 0; r < registers; r++) spread(b[r], m.b + r * 4 * per * 8, 8);
    return;
  }
  for (int r = 0; r < registers; r++)
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < per; i++) {
        const FragmentPlace at = b_place(per, r, lane, i);
        m.b[at.row * 8 + at.column] = element_of(form.b, b[r][lane], i);
      }
}

void load_sum(const MatrixForm& form, const uint32_t* const* c, MatrixTile& m) {
  const LaneKit& kit = lane_kit();
  const int blocks = form.rows == 8 ? 1 : 2;  // of 8 rows
  if (blocks == 1) std::fill_n(m.c, 128, 0);
  for (int p = 0; p < blocks; p++) {
    if (form.sum == Element::f16) {
      kit.spread_halves(c[p], m.c + 8 * p, 16);
      continue;
    }
    for (int i = 0; i < 2; ++i) kit.spread_words(c[2 * p + i], m.c + 16 * i + 8 * p, 32);
  }
}

void store_sum(const MatrixForm& form, const MatrixTile& m, uint32_t* const* d) {
  const LaneKit& kit = lane_kit();
  const int blocks = form.rows == 8 ? 1 : 2;
  for (int p = 0; p < blocks; p++) {
    if (form.sum == Element::f16) {
      uint32_t high[32];
      kit.collect_words(d[p], m.d + 8 * p, 32);
      kit.collect_words(high, m.d + 16 + 8 * p, 32);
      for (int lane = 0; lane < 32; lane++) d[p][lane] |= high[lane] << 16;
      continue;
    }
    for (int i = 0; i < 2; ++i) kit.collect_words(d[2 * p + i], m.d + 16 * i + 8 * p, 32);
  }
}

namespace {

/// Floats are exact: sums in fp32 of products of 11 or fewer bits each.
bool sum_in_floats(const SumRule& rule, const MatrixForm& form, MatrixTile& m) {
  const Element e = form.a;
  if (form.sum != Element::f32 || rule.short_sum || rule.floor > -100 || e != form.b) return false;
  if (e != Element::bf16 && e != Element::f16 && e != Element::tf32) return false;
  const bool brain = e == Element::bf16;
  const TileSum sum{.k = form.k,
                    .per_step = rule.products_per_step,
                    .fraction_bits = rule.fraction_bits,
                    .half = e == Element::f16,
                    .shift = brain ? 16 : 0,
                    .dropped = brain ? 0u : (1u << format_of(e).dropped_bits) - 1};
  if (lane_kit().sum_tile(sum, m)) return true;
  m.a_is_wide = MatrixTile::Wide::special;  // what is out of range for one tile mostly is for its neighbours
  return false;
}

void multiply(const TensorCoreModel& model, const MatrixForm& form, Kept kept, MatrixTile& m) {
  if (format_of(form.sum).integer) return multiply_integers(form, kept, m);
  const SumRule rule = sum_rule(model, form);
  if (rule.widened) return multiply_widened(model, form, kept, m);
  const Formats formats{format_of(form.a), format_of(form.b), format_of(form.sum)};
  if (!kept && plain(model) && sum_in_floats(rule, form, m)) return;
  if (!plain(model) || !sum_columns(rule, formats, form.k, kept, m)) sum_elements(model, form, kept, m);
}

}  // namespace

void multiply(const TensorCoreModel& model, const MatrixForm& form, MatrixTile& m) {
  multiply(model, form, nullptr, m);
}

void multiply_kept(const TensorCoreModel& model, const MatrixForm& form, const uint32_t* metadata,
                   MatrixTile& m) {
  const MatrixForm dense = form.kept();
  if (m.kept_is_new)
    for (int i = 0; i < dense.k; ++i)
      for (int row = 0; row < 16; ++row)
        m.kept[i][row] = static_cast<uint8_t>(sparse_column(form, metadata, row, i));
  m.kept_is_new = false;
  multiply(model, dense, m.kept, m);
}

}  // namespace assay::vm
