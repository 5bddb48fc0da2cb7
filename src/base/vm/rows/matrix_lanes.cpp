// The sums of tensor cores in fp32 for a tile of 16 rows and 8 columns, in the host's floats where these
// are exact.
//
// A step cuts every product, and c, toward zero at 2^-F of the largest exponent and sums what is left
// exactly (tensor_core.h). Operands have at most 11 significant bits, so that a product is an exact float
// where it does not leave the format's range, times a power of two it stays exact, and conversion to an
// integer cuts it toward zero. Largest exponents in [-100, 96] keep that: nothing overflows, and what is
// cut off a product below 2^-126 is all of it, as 2^(-100 - 25) is larger.
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/tensor_core_warp.h"

namespace assay::vm::ASSAY_LANES {
namespace {

#ifdef __AVX512F__
constexpr int width = 16;
#else
constexpr int width = 8;
#endif
typedef int32_t Ints __attribute__((vector_size(4 * width), may_alias));
typedef float Floats __attribute__((vector_size(4 * width), may_alias));
typedef int16_t Shorts __attribute__((vector_size(4 * width), may_alias));
typedef uint16_t Patterns __attribute__((vector_size(4 * width), may_alias));
typedef int32_t Eight __attribute__((vector_size(32), may_alias));
typedef int32_t HalfInts __attribute__((vector_size(2 * width)));
typedef int64_t Longs __attribute__((vector_size(4 * width)));
typedef double Doubles __attribute__((vector_size(4 * width)));

constexpr int zero_exponent = -4096;

/// Lanes 4 g + t of a register as r[t][g].
[[gnu::always_inline]] inline void spread(const uint32_t* lanes, Eight (&r)[4]) {
  Eight v[4];
  __builtin_memcpy(v, lanes, sizeof v);
  const auto first = [](Eight x, Eight y) { return __builtin_shufflevector(x, y, 0, 4, 8, 12, 1, 5, 9, 13); };
  const auto second = [](Eight x, Eight y) {
    return __builtin_shufflevector(x, y, 2, 6, 10, 14, 3, 7, 11, 15);
  };
  const auto low = [](Eight x, Eight y) { return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11); };
  const auto high = [](Eight x, Eight y) {
    return __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
  };
  const Eight a = first(v[0], v[1]), b = first(v[2], v[3]), c = second(v[0], v[1]), d = second(v[2], v[3]);
  r[0] = low(a, b), r[1] = high(a, b), r[2] = low(c, d), r[3] = high(c, d);
}

[[gnu::always_inline]] inline Eight& eight_at(int32_t* p) {
  return *reinterpret_cast<Eight*>(p);
}

#ifdef __AVX2__
/// Two words of 16 bits side by side: their exponents, a half each. `largest` of their magnitudes so far.
template <bool half>
[[gnu::always_inline]] inline Ints exponents_of(const Ints& pair, Patterns& largest) {
  constexpr int fraction_bits = half ? 10 : 7, bias = half ? 15 : 127;
  const Patterns magnitude = reinterpret_cast<Patterns>(pair) & 0x7fff, one = Patterns{} + 1;
  largest = magnitude > largest ? magnitude : largest;
  const Patterns field = magnitude >> fraction_bits;
  const Shorts exponent = reinterpret_cast<Shorts>(field > one ? field : one) - int16_t{bias};
  return reinterpret_cast<Ints>(magnitude == 0 ? Shorts{} + int16_t{zero_exponent} : exponent);
}

/// A word of 16 bits as a float.
template <bool half>
[[gnu::always_inline]] inline Ints widened(const Ints& word) {
  if constexpr (!half) return word << 16;
  // Placed among the subnormals of fp32 and scaled, subnormals of fp16 come out right.
  const Ints bits = (word & 0x7fff) << 13;
  return reinterpret_cast<Ints>(reinterpret_cast<Floats>(bits) * 0x1p112f) | ((word & 0x8000) << 16);
}

/// tf32: the word is the float but for what is cut off.
[[gnu::always_inline]] inline Ints exponent_of(const Ints& bits) {
  const Ints field = (bits >> 23) & 255, zero{};
  return (bits & 0x7fffffff) == 0 ? zero + zero_exponent : (field != 0 ? field : zero + 1) - 127;
}

enum class Format : uint8_t { bf16, f16, tf32 };

/// `rows` words of each element as floats; exponents of elements i and i + products / 2 of a step are the
/// halves of a word. Returns whether an operand is an Inf or a NaN.
template <Format format>
[[gnu::always_inline]] inline bool widen(const TileSum& rule, int products, int rows, const int32_t* words,
                                         float* value, int32_t* exponents) {
  constexpr bool half = format == Format::f16;
  const int of_half = rows * products / 2;
  Patterns largest{};
  Ints special{};
  for (int step = 0; step < rule.k / products; ++step, words += 2 * of_half, value += 2 * of_half)
    for (int at = 0; at < of_half; at += width, exponents += width) {
      const Ints first = *reinterpret_cast<const Ints*>(words + at);
      const Ints second = *reinterpret_cast<const Ints*>(words + of_half + at);
      Ints wide[2], pair;
      if constexpr (format == Format::tf32) {
        wide[0] = first & static_cast<int32_t>(~rule.dropped);
        wide[1] = second & static_cast<int32_t>(~rule.dropped);
        for (const Ints& bits : wide) special |= ((bits >> 23) & 255) == 255;
        pair = (exponent_of(wide[0]) & 0xffff) | exponent_of(wide[1]) << 16;
      } else {
        wide[0] = widened<half>(first), wide[1] = widened<half>(second);
        pair = exponents_of<half>(first | second << 16, largest);
      }
      *reinterpret_cast<Ints*>(value + at) = wide[0];
      *reinterpret_cast<Ints*>(value + of_half + at) = wide[1];
      *reinterpret_cast<Ints*>(exponents) = pair;
    }
  special |= reinterpret_cast<Ints>(largest >= uint16_t{half ? 0x7c00 : 0x7f80});
  int32_t any = 0;
  for (int n = 0; n < width; ++n) any |= special[n];
  return any != 0;
}

bool widen(const TileSum& rule, int products, int rows, const int32_t* words, float* value,
           int32_t* exponents) {
  if (rule.half) return widen<Format::f16>(rule, products, rows, words, value, exponents);
  if (rule.shift == 16) return widen<Format::bf16>(rule, products, rows, words, value, exponents);
  return widen<Format::tf32>(rule, products, rows, words, value, exponents);
}

/// Half of `x`.
[[gnu::always_inline]] inline HalfInts part(const Ints& x, int half) {
  HalfInts result;
  __builtin_memcpy(&result, reinterpret_cast<const char*>(&x) + half * sizeof result, sizeof result);
  return result;
}

/// (first + second) 2^unit cut toward zero to fp32, all normal or zero: exact in doubles, whose exponent is
/// then moved from bias 1023 to 127.
[[gnu::always_inline]] inline Ints truncated_in_doubles(const Ints& first, const Ints& second,
                                                        const Ints& unit) {
  Ints result;
  for (int half = 0; half < 2; ++half) {
    const Doubles sum = __builtin_convertvector(part(first, half), Doubles) +
                        __builtin_convertvector(part(second, half), Doubles);
    const Longs scale = __builtin_convertvector(part(unit, half) + 1023, Longs) << 52;
    const Longs bits = reinterpret_cast<Longs>(sum * reinterpret_cast<Doubles>(scale));
    const Longs magnitude = bits & 0x7fffffffffffffff;
    const Longs moved = ((magnitude >> 29) - (int64_t{896} << 23)) | ((bits >> 32) & 0x80000000ll);
    const HalfInts words = __builtin_convertvector(magnitude == 0 ? Longs{} : moved, HalfInts);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + half * sizeof words, &words, sizeof words);
  }
  return result;
}

/// The same; sums mostly fit in 32 bits, which AVX-512 converts toward zero.
[[gnu::always_inline]] inline Ints truncated(const Ints& first, const Ints& second, const Ints& unit) {
#ifdef __AVX512F__
  const Ints total = first + second, wrapped = (first ^ total) & (second ^ total);
  if (_mm512_movepi32_mask(reinterpret_cast<__m512i>(wrapped)) == 0) [[likely]] {
    constexpr int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    const auto cut =
        reinterpret_cast<Floats>(_mm512_cvt_roundepi32_ps(reinterpret_cast<__m512i>(total), toward_zero));
    return reinterpret_cast<Ints>(cut * reinterpret_cast<Floats>((unit + 127) << 23));
  }
#endif
  return truncated_in_doubles(first, second, unit);
}

constexpr int together = 2;  // columns, for which A is loaded once

/// One step for `width` rows of neighbouring columns: a[i][16] at this step's first i and row, b[i][8] at
/// the first column, exponents of pairs as widen() leaves them.
template <int count>
[[gnu::always_inline]] inline void step(int fraction_bits, const float* a, const int32_t* a_exponents,
                                        const float* b, const int32_t* b_exponents, Ints (&sum)[together],
                                        Ints& outside) {
  const Ints zero{};
  Ints largest[together], sums[together][2];
  Shorts of_products[together];
  Floats scale[together];
  for (int n = 0; n < together; ++n) of_products[n] = Shorts{} + int16_t{2 * zero_exponent};
#pragma GCC unroll 32
  for (int i = 0; i < count / 2; ++i) {
    const Shorts of_a = *reinterpret_cast<const Shorts*>(a_exponents + 16 * i);
    for (int n = 0; n < together; ++n) {
      const Shorts e = of_a + reinterpret_cast<Shorts>(zero + b_exponents[8 * i + n]);
      of_products[n] = e > of_products[n] ? e : of_products[n];
    }
  }
  for (int n = 0; n < together; ++n) {
    const auto both = reinterpret_cast<Ints>(of_products[n]);
    const Ints low = both << 16 >> 16, high = both >> 16, of_sum = exponent_of(sum[n]);
    largest[n] = low > high ? low : high;
    largest[n] = of_sum > largest[n] ? of_sum : largest[n];
  }
  for (int n = 0; n < together; ++n) {
    outside |= (largest[n] > 96) | ((largest[n] < -100) & (largest[n] > zero_exponent / 2));
    largest[n] = largest[n] < -100 ? zero - 100 : largest[n];
    scale[n] = reinterpret_cast<Floats>((fraction_bits + 127 - largest[n]) << 23);
    // |product| 2^(F - largest) < 2^(F + 2) <= 2^27: eight of them and c stay below 2^31.
    sums[n][0] = __builtin_convertvector(reinterpret_cast<Floats>(sum[n]) * scale[n], Ints);
    sums[n][1] = zero;
  }
#pragma GCC unroll 32
  for (int i = 0; i < count; ++i) {
    const Floats of_a = *reinterpret_cast<const Floats*>(a + 16 * i);
    for (int n = 0; n < together; ++n)
      sums[n][(i >> 3) & 1] += __builtin_convertvector(of_a * b[8 * i + n] * scale[n], Ints);
  }
  for (int n = 0; n < together; ++n) sum[n] = truncated(sums[n][0], sums[n][1], largest[n] - fraction_bits);
}

template <int k, int per_step>
[[gnu::always_inline]] inline bool sum_columns(const TileSum& rule, MatrixTile& m) {
  Ints outside{};
  for (int n = 0; n < 8; n += together)
    for (int row = 0; row < 16; row += width) {
      Ints sum[together];
      for (int j = 0; j < together; ++j) {
        sum[j] = *reinterpret_cast<const Ints*>(m.c + 16 * (n + j) + row);
        outside |= ((sum[j] >> 23) & 255) == 255;
      }
      for (int i = 0; i < k; i += per_step)
        step<per_step>(rule.fraction_bits, m.a_value + 16 * i + row, m.a_exponents + 8 * i + row,
                       m.b_value + 8 * i + n, m.b_exponents + 4 * i + n, sum, outside);
      for (int j = 0; j < together; ++j) *reinterpret_cast<Ints*>(m.d + 16 * (n + j) + row) = sum[j];
    }
  int32_t any = 0;
  for (int n = 0; n < width; ++n) any |= outside[n];
  return any == 0;
}
#endif

}  // namespace

void spread_words(const uint32_t* lanes, int32_t* to, int stride) {
  Eight r[4];
  spread(lanes, r);
  for (int t = 0; t < 4; ++t) eight_at(to + t * stride) = r[t];
}

void spread_halves(const uint32_t* lanes, int32_t* to, int stride) {
  Eight r[4];
  spread(lanes, r);
  for (int t = 0; t < 4; ++t) {
    eight_at(to + 2 * t * stride) = r[t] & 0xffff;
    eight_at(to + (2 * t + 1) * stride) = (r[t] >> 16) & 0xffff;
  }
}

void collect_words(uint32_t* lanes, const int32_t* from, int stride) {
  Eight r[4];
  for (int t = 0; t < 4; ++t) r[t] = *reinterpret_cast<const Eight*>(from + t * stride);
  const auto low = [](Eight x, Eight y) { return __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11); };
  const auto high = [](Eight x, Eight y) {
    return __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
  };
  const auto first = [](Eight x, Eight y) { return __builtin_shufflevector(x, y, 0, 1, 8, 9, 2, 3, 10, 11); };
  const auto second = [](Eight x, Eight y) {
    return __builtin_shufflevector(x, y, 4, 5, 12, 13, 6, 7, 14, 15);
  };
  const Eight a = low(r[0], r[1]), b = low(r[2], r[3]), c = high(r[0], r[1]), d = high(r[2], r[3]);
  const Eight v[4] = {first(a, b), second(a, b), first(c, d), second(c, d)};
  __builtin_memcpy(lanes, v, sizeof v);
}

#ifdef __AVX2__
bool sum_tile(const TileSum& rule, MatrixTile& m) {
  const int products = rule.per_step < rule.k ? rule.per_step : rule.k;
  if (products < 4 || rule.k % products != 0) return false;
  if (m.a_is_wide != MatrixTile::Wide::yes) {
    if (m.a_is_wide == MatrixTile::Wide::special) return false;
    const bool special = widen(rule, products, 16, m.a, m.a_value, m.a_exponents);
    m.a_is_wide = special ? MatrixTile::Wide::special : MatrixTile::Wide::yes;
    if (special) return false;
  }
  if (widen(rule, products, 8, m.b, m.b_value, m.b_exponents)) return false;
  if (rule.k == 16 && rule.per_step >= 16) return sum_columns<16, 16>(rule, m);
  if (rule.k == 16 && rule.per_step == 8) return sum_columns<16, 8>(rule, m);
  if (rule.k == 8 && rule.per_step >= 8) return sum_columns<8, 8>(rule, m);
  if (rule.k == 8 && rule.per_step == 4) return sum_columns<8, 4>(rule, m);
  if (rule.k == 32 && rule.per_step == 16) return sum_columns<32, 16>(rule, m);
  return false;
}
#else
/// In vectors of four the sums of significands (tensor_core_warp.cpp) take a third of the time.
bool sum_tile(const TileSum&, MatrixTile&) {
  return false;
}
#endif

}  // namespace assay::vm::ASSAY_LANES
