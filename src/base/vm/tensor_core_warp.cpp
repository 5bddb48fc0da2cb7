#include "src/base/vm/tensor_core_warp.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace {

// Eight rows of one output column, as eight lanes. The compiler lowers the type where the target has no such
// vector; the operations are exact integers, so every target gives the same bits.
using Lanes = int32_t __attribute__((vector_size(32), may_alias));
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

/// Decodes `count` words, a multiple of 8; returns true where one of them is an Inf or a NaN.
[[gnu::always_inline]] inline bool decode_words(const ElementFormat& f, int count, const int32_t* word,
                                                int32_t* significand, int32_t* exponent) {
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
    *reinterpret_cast<Lanes*>(significand + i) = (s ^ negative) - negative;
    *reinterpret_cast<Lanes*>(exponent + i) = s == 0 ? zero + kZeroExponent : (e != 0 ? e : zero + 1) - bias;
    special |= (w & magnitude) >= largest_number;
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

/// (sums[0] + sums[1]) * 2^unit, exact in doubles: 33-bit sums, unit in [-158, 231].
[[gnu::always_inline]] inline void exact_sums(const Lanes (&sums)[2], const Lanes& unit, int half,
                                              Doubles& value) {
  Quad low, high, scale;
  std::memcpy(&low, reinterpret_cast<const char*>(&sums[0]) + 16 * half, 16);
  std::memcpy(&high, reinterpret_cast<const char*>(&sums[1]) + 16 * half, 16);
  std::memcpy(&scale, reinterpret_cast<const char*>(&unit) + 16 * half, 16);
  const Wide scale_bits = __builtin_convertvector(scale + 1023, Wide) << 52;
  value =
      (__builtin_convertvector(low, Doubles) + __builtin_convertvector(high, Doubles)) * (Doubles)scale_bits;
}

/// The sums truncated to fp32.
[[gnu::always_inline]] inline void truncate_lanes(const Lanes (&sums)[2], const Lanes& unit,
                                                  int32_t* d_word) {
  constexpr int64_t kMagnitude = 0x7fffffffffffffff;
  for (int half = 0; half < 2; half++) {
    Doubles value;
    exact_sums(sums, unit, half, value);
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

/// The sums in the format that the rule asks for.
[[gnu::always_inline]] inline void finish_lanes(const SumRule& rule, bool f16, const Lanes (&sums)[2],
                                                const Lanes& unit, int32_t* d_word) {
  if (f16) {
    for (int half = 0; half < 2; half++) {
      Doubles value;
      exact_sums(sums, unit, half, value);
      for (int n = 0; n < 4; n++) d_word[4 * half + n] = static_cast<int32_t>(round_to_f16(value[n]));
    }
    return;
  }
  truncate_lanes(sums, unit, d_word);
  if (rule.short_sum)
    for (int n = 0; n < 8; n++) {
      d_word[n] &= ~0x3ff;
      if ((d_word[n] & 0x7fffffff) == 0) d_word[n] = 0;
    }
}

/// Moves a magnitude by `up` bits to the left (right where negative), then `shift` bits, at most 31, to the
/// right.
[[gnu::always_inline]] inline void cut(Lanes& magnitude, int up, Lanes shift) {
  const Lanes zero{};
  if (up < 0) shift -= up;
  shift = shift > 31 ? zero + 31 : shift;
  magnitude = (up > 0 ? magnitude << up : magnitude) >> shift;
}

struct Formats {
  const ElementFormat &a, &b, &sum;
};

/// What an operand is beside a finite number, per lane: all bits set or none.
struct Classes {
  Lanes nan, infinite, zero, negative;
};
[[gnu::always_inline]] inline void classify(const ElementFormat& f, Lanes word, Classes& c) {
  const int32_t hidden = 1 << f.fraction_bits, mask = (1 << f.exponent_bits) - 1;
  const int32_t infinity = mask << f.fraction_bits;
  const Lanes w = word >> f.dropped_bits, magnitude = w & (infinity | (hidden - 1));
  c.infinite = f.infinities ? magnitude == infinity : Lanes{};
  c.nan = f.infinities ? magnitude > infinity : magnitude == (infinity | (hidden - 1));
  c.zero = magnitude == 0;
  c.negative = -((w >> (f.fraction_bits + f.exponent_bits)) & 1);
}

/// One column of B for eight rows of A: element i of all of them lies at 8 i, or, where each row has `own`
/// ones (of a sparse A), at 16 i and behind it.
template <bool own>
struct ColumnOfB {
  const int32_t *word, *significand, *exponent;
  [[gnu::always_inline]] static Lanes at(const int32_t* of, int i) {
    if constexpr (own)
      return *reinterpret_cast<const Lanes*>(of + 16 * i);
    else
      return Lanes{} + of[8 * i];
  }
  /// From element i and of row `row` on.
  ColumnOfB from(int i, int row) const {
    const int by = own ? 16 * i + row : 8 * i;
    return {word + by, significand + by, exponent + by};
  }
};

/// Overrides the elements of d whose sum holds a NaN or an Inf. `a` are words of eight rows.
template <int count, bool own>
[[gnu::always_inline]] inline void override_specials(const Formats& f, const int32_t* a,
                                                     const ColumnOfB<own>& b, const int32_t* c_word,
                                                     int32_t* d_word) {
  const Lanes none{};
  Classes c, x, y;
  classify(f.sum, *reinterpret_cast<const Lanes*>(c_word), c);
  Lanes nan = c.nan, plus = c.infinite & ~c.negative, minus = c.infinite & c.negative;
  for (int i = 0; i < count; i++) {
    classify(f.a, *reinterpret_cast<const Lanes*>(a + 16 * i), x);
    classify(f.b, b.at(b.word, i), y);
    const Lanes infinite = x.infinite | y.infinite, negative = x.negative ^ y.negative;
    nan |= x.nan | y.nan | (infinite & (x.zero | y.zero));
    plus |= infinite & ~negative;
    minus |= infinite & negative;
  }
  const bool half = f.sum.bits == 16;
  const Lanes infinity = none + (half ? 0x7c00 : 0x7f800000);
  const auto sign = static_cast<int32_t>(half ? 0x8000u : 0x80000000u);
  nan |= plus & minus;
  Lanes d = *reinterpret_cast<const Lanes*>(d_word);
  d = minus != 0 ? infinity | sign : d;
  d = plus != 0 ? infinity : d;
  d = nan != 0 ? none + static_cast<int32_t>(half ? kTensorCoreNanF16 : kTensorCoreNan) : d;
  *reinterpret_cast<Lanes*>(d_word) = d;
}

/// One step over `count` products (at most 32) of eight rows `a` for one column: c_word -> d_word.
template <int count, bool own>
[[gnu::always_inline]] inline void column_step(const SumRule& rule, const Formats& f,
                                               const int32_t* a_significand, const int32_t* a_exponent,
                                               const ColumnOfB<own>& b, const int32_t* c_word,
                                               int32_t* d_word) {
  alignas(32) int32_t c_significand[8], c_exponent[8];
  decode_words(f.sum, 8, c_word, c_significand, c_exponent);
  const auto* c_exponents = reinterpret_cast<const Lanes*>(c_exponent);
  const auto* c_significands = reinterpret_cast<const Lanes*>(c_significand);
  const auto a_exponents = [&](int i) { return *reinterpret_cast<const Lanes*>(a_exponent + 16 * i); };
  const auto a_significands = [&](int i) { return *reinterpret_cast<const Lanes*>(a_significand + 16 * i); };
  const Lanes zero{};
  Lanes largest = zero + rule.floor;
  largest = c_exponents[0] > largest ? c_exponents[0] : largest;
#pragma GCC unroll 32
  for (int i = 0; i < count; i++) {
    const Lanes e = a_exponents(i) + b.at(b.exponent, i);
    largest = e > largest ? e : largest;
  }
  // |product| < 2^(2 + its fraction bits), moved to F fraction bits: below 2^(F + 2) <= 2^27. Eight of them
  // stay below 2^30 (F = 25 has at most sixteen), so two 32-bit sums of eight and c < 2^26 are exact; their
  // sum is taken in doubles. With 32 products F is 13.
  const int up = rule.fraction_bits - f.a.fraction_bits - f.b.fraction_bits;
  Lanes sums[2] = {zero, zero};
#pragma GCC unroll 32
  for (int i = 0; i < count; i++) {
    const Lanes product = a_significands(i) * b.at(b.significand, i);
    const Lanes negative = product >> 31;
    Lanes kept = (product ^ negative) - negative;
    cut(kept, up, largest - (a_exponents(i) + b.at(b.exponent, i)));
    sums[(i >> 3) & 1] += (kept ^ negative) - negative;
  }
  const Lanes c_negative = c_significands[0] >> 31;
  Lanes c_kept = (c_significands[0] ^ c_negative) - c_negative;
  cut(c_kept, rule.fraction_bits - f.sum.fraction_bits, largest - c_exponents[0]);
  sums[0] += (c_kept ^ c_negative) - c_negative;
  finish_lanes(rule, f.sum.bits == 16, sums, largest - rule.fraction_bits, d_word);
}

inline bool is_special(const ElementFormat& sum, int32_t word) {
  const int32_t mask = ((1 << sum.exponent_bits) - 1) << sum.fraction_bits;
  return (word & mask) == mask;
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
      if (special) override_specials<per_step>(f, m.a + 16 * i + row, b.from(i, row), c, d);
      c = d;
      if (!special && !last)
        for (int j = 0; j < 8; j++)
          if (is_special(f.sum, d[j])) return false;
    }
  }
  return true;
}

/// The columns of B that the rows of a sparse A have, [i][row]; null: A has all.
using Kept = const uint8_t (*)[16];

template <int k, int per_step>
[[gnu::always_inline]] inline bool sum_columns(const SumRule& rule, const Formats& f, Kept kept,
                                               MatrixTile& m) {
  if (m.a_is_new) m.a_special = decode_words(f.a, 16 * k, m.a, m.a_significand, m.a_exponent);
  m.a_is_new = false;
  bool special = m.a_special;
  for (int i = 0; i < 128; i++) special |= is_special(f.sum, m.c[i]);
  if (!kept) special |= decode_words(f.b, k * 8, m.b, m.b_significand, m.b_exponent);
  for (int n = 0; n < 8; n++) {
    if (!kept) {
      const ColumnOfB<false> b{m.b + n, m.b_significand + n, m.b_exponent + n};
      for (bool done = false; !done; special |= !done)
        done = sum_column<k, per_step>(rule, f, special, n, b, m);
      continue;
    }
    alignas(32) int32_t word[k * 16], significand[k * 16], exponent[k * 16];
    for (int i = 0; i < k; i++)
      for (int row = 0; row < 16; row++) word[i * 16 + row] = m.b[kept[i][row] * 8 + n];
    special |= decode_words(f.b, k * 16, word, significand, exponent);
    const ColumnOfB<true> b{word, significand, exponent};
    for (bool done = false; !done; special |= !done)
      done = sum_column<k, per_step>(rule, f, special, n, b, m);
  }
  return true;
}

/// The shapes that exist; any other goes element by element.
[[gnu::target_clones("avx2", "default")]] bool sum_columns(const SumRule& rule, const Formats& f, int k,
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
    int32_t sums[16] = {};
    for (int i = 0; i < form.k; i++)
      for (int row = 0; row < 16; row++)
        sums[row] += m.a[i * 16 + row] * m.b[(kept ? kept[i][row] : i) * 8 + n];
    for (int row = 0; row < 16; row++) {
      int64_t exact = int64_t{m.c[n * 16 + row]} + sums[row];
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
  return lane_kit().sum_tile({.k = form.k,
                              .per_step = rule.products_per_step,
                              .fraction_bits = rule.fraction_bits,
                              .half = e == Element::f16,
                              .shift = brain ? 16 : 0,
                              .dropped = brain ? 0u : (1u << format_of(e).dropped_bits) - 1},
                             m);
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
  uint8_t kept[MatrixTile::most_k][16];
  for (int i = 0; i < dense.k; ++i)
    for (int row = 0; row < 16; ++row)
      kept[i][row] = static_cast<uint8_t>(sparse_column(form, metadata, row, i));
  multiply(model, dense, kept, m);
}

}  // namespace assay::vm
