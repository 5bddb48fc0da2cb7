// The sums of tensor cores in fp32 for a tile of 16 rows and 8 columns, in the host's floats where these
// are exact.
//
// A step cuts every product, and c, toward zero at 2^-F of the largest exponent and sums what is left
// exactly (tensor_core.h). Operands have at most 11 significant bits, so that a product is an exact float
// where it does not leave the format's range, times a power of two it stays exact, and conversion to an
// integer cuts it toward zero. Largest exponents in [-100, 96] keep that: nothing overflows, and what is
// cut off a product below 2^-126 is all of it, as 2^(-100 - 25) is larger.
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
/// Words as floats and exponents; returns whether one of them is an Inf or a NaN.
template <bool half>
[[gnu::always_inline]] inline bool widen(const TileSum& rule, int count, const int32_t* words, float* value,
                                         int32_t* exponent) {
  const Ints zero{};
  Ints special = zero;
  for (int i = 0; i < count; i += width) {
    const Ints w = *reinterpret_cast<const Ints*>(words + i);
    Ints field, bits;
    if constexpr (half) {
      // Placed among the subnormals of fp32 and scaled, subnormals of fp16 come out right.
      bits = (w & 0x7fff) << 13;
      field = ((w >> 10) & 31);
      special |= field == 31;
      const Floats scaled = reinterpret_cast<Floats>(bits) * 0x1p112f;
      bits = reinterpret_cast<Ints>(scaled) | ((w & 0x8000) << 16);
    } else {
      bits = (w << rule.shift) & static_cast<int32_t>(~rule.dropped);
      field = (bits >> 23) & 255;
      special |= field == 255;
    }
    const int bias = half ? 15 : 127;
    const Ints e = (field != 0 ? field : zero + 1) - bias;
    *reinterpret_cast<Ints*>(value + i) = bits;
    *reinterpret_cast<Ints*>(exponent + i) = (bits & 0x7fffffff) == 0 ? zero + zero_exponent : e;
  }
  int32_t any = 0;
  for (int n = 0; n < width; ++n) any |= special[n];
  return any != 0;
}

bool widen(const TileSum& rule, int count, const int32_t* words, float* value, int32_t* exponent) {
  return rule.half ? widen<true>(rule, count, words, value, exponent)
                   : widen<false>(rule, count, words, value, exponent);
}

/// Half of `x`.
[[gnu::always_inline]] inline HalfInts part(const Ints& x, int half) {
  HalfInts result;
  __builtin_memcpy(&result, reinterpret_cast<const char*>(&x) + half * sizeof result, sizeof result);
  return result;
}

/// (sums[0] + sums[1]) 2^unit cut toward zero to fp32, all normal or zero: exact in doubles, whose exponent
/// is then moved from bias 1023 to 127.
[[gnu::always_inline]] inline Ints truncated(const Ints& first, const Ints& second, const Ints& unit) {
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

constexpr int together = 2;  // columns, for which A is loaded once

/// One step for `width` rows of neighbouring columns: a[i][16] at this step's first i and row, b[i][8] at
/// the first column.
template <int count>
[[gnu::always_inline]] inline void step(int fraction_bits, const float* a, const int32_t* a_exponent,
                                        const float* b, const int32_t* b_exponent, Ints (&sum)[together],
                                        Ints& outside) {
  const Ints zero{};
  Ints largest[together], sums[together][2];
  Floats scale[together];
  for (int n = 0; n < together; ++n) {
    const Ints field = (sum[n] >> 23) & 255;
    largest[n] = (sum[n] & 0x7fffffff) == 0 ? zero + zero_exponent : (field != 0 ? field : zero + 1) - 127;
  }
#pragma GCC unroll 32
  for (int i = 0; i < count; ++i) {
    const Ints of_a = *reinterpret_cast<const Ints*>(a_exponent + 16 * i);
    for (int n = 0; n < together; ++n) {
      const Ints e = of_a + b_exponent[8 * i + n];
      largest[n] = e > largest[n] ? e : largest[n];
    }
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
        step<per_step>(rule.fraction_bits, m.a_value + 16 * i + row, m.a_exponent + 16 * i + row,
                       m.b_value + 8 * i + n, m.b_exponent + 8 * i + n, sum, outside);
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
  if (m.a_is_wide != MatrixTile::Wide::yes) {
    if (m.a_is_wide == MatrixTile::Wide::special) return false;
    const bool special = widen(rule, 16 * rule.k, m.a, m.a_value, m.a_exponent);
    m.a_is_wide = special ? MatrixTile::Wide::special : MatrixTile::Wide::yes;
    if (special) return false;
  }
  if (widen(rule, 8 * rule.k, m.b, m.b_value, m.b_exponent)) return false;
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
