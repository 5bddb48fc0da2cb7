// Errors of tensor-core sums by tiles, parts along slopes, probes.
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/shadow_kit.h"

namespace assay::vm::ASSAY_LANES {
namespace {

typedef double Eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t EightBits __attribute__((vector_size(64), aligned(8), may_alias));

Eight eight_at(const double* x) {
  return *reinterpret_cast<const Eight*>(x);
}
void put_eight(double* to, Eight x) {
  *reinterpret_cast<Eight*>(to) = x;
}
Eight magnitude(Eight x) {
  return reinterpret_cast<Eight>(reinterpret_cast<EightBits>(x) & ~(uint64_t{1} << 63));
}

/// Products of 11 bits or 24 bits are exact doubles; their sum is kept as high + low (two_sum).
template <bool of_a, bool of_b, bool counts_terms>
void combine_rows(const TileErrors& t) {
  alignas(64) double exact_b[32][8], size_b[32][8];
  for (int i = 0; i < t.k; ++i) {
    const Eight exact = eight_at(t.b + 8 * i) + eight_at(t.b_error + 8 * i);
    put_eight(exact_b[i], exact), put_eight(size_b[i], magnitude(exact));
  }
  for (int row = 0; row < t.rows; ++row) {
    const double *a = t.a + 32 * row, *a_error = t.a_error + 32 * row, *a_bound = t.a_bound + 32 * row;
    Eight high = eight_at(t.c + 8 * row), low = {}, error = eight_at(t.c_error + 8 * row),
          bound = eight_at(t.c_bound + 8 * row);
    const Eight from_c = magnitude(error), d = eight_at(t.d + 8 * row);
    for (int i = 0; i < t.k; ++i) {
      const double value = a[i], size = __builtin_fabs(value);
      const Eight p = value * eight_at(t.b + 8 * i), s = high + p, rest = s - high;
      low += (high - (s - rest)) + (p - rest);
      high = s;
      if constexpr (of_a && of_b) {
        error += eight_at(exact_b[i]) * a_error[i] + value * eight_at(t.b_error + 8 * i);
        bound += eight_at(size_b[i]) * a_bound[i] + size * eight_at(t.b_bound + 8 * i);
      } else if constexpr (of_a) {
        error += eight_at(exact_b[i]) * a_error[i];
        bound += eight_at(size_b[i]) * a_bound[i];
      } else if constexpr (of_b) {
        error += value * eight_at(t.b_error + 8 * i);
        bound += size * eight_at(t.b_bound + 8 * i);
      }
    }
    const Eight local = (high - d) + low, own = magnitude(local);
    put_eight(t.local + 8 * row, local);
    put_eight(t.error + 8 * row, error + local);
    put_eight(t.bound + 8 * row, bound + own);
    if constexpr (!counts_terms) continue;
    Eight terms = own + from_c;
    for (int i = 0; i < t.k; ++i)
      terms += magnitude(eight_at(exact_b[i]) * a_error[i]) + magnitude(a[i] * eight_at(t.b_error + 8 * i));
    put_eight(t.terms + 8 * row, terms);
  }
}

template <bool counts_terms>
void combine_tile_as(const TileErrors& t) {
  if (t.a_rounded && t.b_rounded) return combine_rows<true, true, counts_terms>(t);
  if (t.a_rounded) return combine_rows<true, false, counts_terms>(t);
  if (t.b_rounded) return combine_rows<false, true, counts_terms>(t);
  combine_rows<false, false, counts_terms>(t);
}

void combine_tile(const TileErrors& t) {
  if (t.terms) return combine_tile_as<true>(t);
  combine_tile_as<false>(t);
}

template <bool in_a, bool in_b>
void combine_part_rows(const TileParts& t) {
  for (int row = 0; row < t.rows; ++row) {
    const double *a = t.a + 32 * row, *a_part = t.a_part + 32 * row;
    Eight sum = eight_at(t.c_part + 8 * row);
    for (int i = 0; i < t.k; ++i) {
      const Eight b = eight_at(t.b + 8 * i), b_part = eight_at(t.b_part + 8 * i);
      if constexpr (in_a && in_b)
        sum += b * a_part[i] + a[i] * b_part;
      else
        sum += in_a ? b * a_part[i] : a[i] * b_part;
    }
    put_eight(t.part + 8 * row, sum);
  }
}

void combine_tile_part(const TileParts& t) {
  if (t.in_a && t.in_b) return combine_part_rows<true, true>(t);
  if (t.in_a) return combine_part_rows<true, false>(t);
  combine_part_rows<false, true>(t);
}

typedef double __attribute__((may_alias)) Value;
typedef uint64_t __attribute__((may_alias)) Bits;
constexpr uint64_t kSign = uint64_t{1} << 63, kExponent = 0x7ff0000000000000u;

/// slope * part, 0 where the part is 0; by bits, since comparisons of doubles keep compilers from vectors.
uint64_t term_bits(double slope, double part) {
  const double product = slope * part;
  const uint64_t has = (*reinterpret_cast<const Bits*>(&part) << 1) != 0 ? ~uint64_t{0} : 0;
  return *reinterpret_cast<const Bits*>(&product) & has;
}

/// With a term that is not finite.
PartSum carry_unbounded_part(double* d, int count, const double* const* slope, const double* const* part) {
  PartSum made;
  for (uint32_t i = 0; i < 32; ++i) {
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const uint64_t term = term_bits(slope[k][i], part[k][i]);
      if ((term & kExponent) == kExponent)
        made.unbounded |= 1u << i;
      else
        sum += *reinterpret_cast<const Value*>(&term);
    }
    d[i] = sum, made.any |= sum != 0;
  }
  return made;
}

typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t FourBits __attribute__((vector_size(32), aligned(8), may_alias));

PartSum carry_part(double* d, int count, const double* const* slope, const double* const* part) {
  FourBits bad = {}, seen = {};
  for (int i = 0; i < 32; i += 4) {
    Four sum = {};
    for (int k = 0; k < count; ++k) {
      const Four p = *reinterpret_cast<const Four*>(part[k] + i),
                 product = *reinterpret_cast<const Four*>(slope[k] + i) * p;
      const auto has = reinterpret_cast<FourBits>((reinterpret_cast<FourBits>(p) << 1) != 0);
      const FourBits term = reinterpret_cast<FourBits>(product) & has;
      bad |= (term & kExponent) + (kExponent & -kExponent);  // carries into the sign where all bits are set
      sum += reinterpret_cast<Four>(term);
    }
    *reinterpret_cast<Four*>(d + i) = sum;
    seen |= reinterpret_cast<FourBits>(sum) << 1;
  }
  if ((bad[0] | bad[1] | bad[2] | bad[3]) & kSign) return carry_unbounded_part(d, count, slope, part);
  return {0, (seen[0] | seen[1] | seen[2] | seen[3]) != 0};
}

void sizes_of_terms(double* terms, const double* local, int count, const double* const* slope,
                    const double* const* error) {
  for (int i = 0; i < 32; ++i) terms[i] = __builtin_fabs(local[i]);
  for (int k = 0; k < count; ++k) {
    const double *s = slope[k], *e = error[k];
#pragma GCC ivdep
    for (int i = 0; i < 32; ++i) {
      const uint64_t size = term_bits(s[i], e[i]) & ~kSign;
      terms[i] += *reinterpret_cast<const Value*>(&size);
    }
  }
}

void sizes_of_probes(ProbeSizes& sizes, double share, const double* a, const double* b, double roundoff,
                     const double* terms) {
  for (int i = 0; i < 32; i += 8) {
    const Eight left_out = share > 0 ? magnitude(share * eight_at(a + i) * eight_at(b + i)) : Eight{};
    put_eight(sizes.left_out + i, left_out);
    put_eight(sizes.own + i, left_out + roundoff * eight_at(terms + i));
  }
}

void add_probe(double* sum, const ProbeSizes& sizes, uint64_t place, int probe) {
#pragma GCC ivdep
  for (uint64_t i = 0; i < 32; ++i) {
    const double added = probe == 0 ? sizes.left_out[i] : sizes.own[i] * probe_factor(place ^ i, probe);
    sum[i] = sizes.own[i] > 0 ? sum[i] + added : sum[i];
  }
}

/// Binades::binade_of.
uint64_t binade_of(uint64_t bits) {
  const uint64_t exponent = bits >> 52, above = exponent < 1023 - 32 ? 0 : exponent - (1023 - 32);
  return above > 63 ? 63 : above;
}

void measure_growth(ErrorGrowth& g, uint32_t mask, const double* result, const double* error, int count,
                    const double* const* value, const double* const* of_value) {
  for (int i = 0; i < 32; ++i) {
    g.error[i] = __builtin_fabs(error[i]) / __builtin_fabs(result[i] + error[i]);
    g.operand[i] = 0, g.which[i] = 0;
  }
  for (int k = 0; k < count; ++k) {
    const double *x = value[k], *e = of_value[k];
    const auto number = static_cast<uint64_t>(k);
#pragma GCC ivdep
    for (int i = 0; i < 32; ++i) {
      const double off = __builtin_fabs(e[i]), relative = off / __builtin_fabs(x[i] + e[i]),
                   counted = off > 0 ? relative : 0, known = g.operand[i];
      g.operand[i] = counted > known ? counted : known;
      g.which[i] = counted > known ? number : g.which[i];
    }
  }
  for (int i = 0; i < 32; ++i) g.growth[i] = g.error[i] / g.operand[i];
  const auto *errors = reinterpret_cast<const Bits*>(g.error),
             *growths = reinterpret_cast<const Bits*>(g.growth),
             *operands = reinterpret_cast<const Bits*>(g.operand);
  uint64_t largest = 0;
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    g.error_binade[i] = binade_of(errors[i]), g.growth_binade[i] = binade_of(growths[i]);
    const uint64_t positive = errors[i] - 1 < kExponent - 1 ? ~uint64_t{0} : 0,
                   of_operand = operands[i] != 0 ? ~uint64_t{0} : 0,
                   finite = growths[i] < kExponent ? ~uint64_t{0} : 0, here = uint64_t{0} - (mask >> i & 1);
    g.counts[i] = positive & of_operand & finite & here;
    const uint64_t counted = errors[i] & g.counts[i];  // positive numbers are ordered as their bits are
    largest = counted > largest ? counted : largest;
  }
  g.largest = *reinterpret_cast<const Value*>(&largest);
}

void follow_returns(ReturningRow& r, const ErrorGrowth& g, uint32_t sources, double least,
                    const double* result, const double* error, const double* local, uint64_t* binade) {
  constexpr double kMost = 0x1p+1000;
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    const bool counts = g.counts[i] != 0, returned = (sources >> g.which[i] & 1) != 0;
    const double came = g.operand[i] < least ? least : g.operand[i],
                 left = __builtin_fabs(error[i] - local[i]) / __builtin_fabs(result[i] + error[i]);
    const bool anew = (r.growth[i] <= 1) | (came <= r.start[i]);
    const double growth = anew ? 1 : r.growth[i], start = anew ? came : r.start[i];
    const double so_far = came / start, next = growth * (left / came);
    const double within = next < 1 ? 1 : next > kMost ? kMost : next;
    const double made = returned ? (so_far < growth ? so_far : growth) : 1;
    binade[i] = binade_of(*reinterpret_cast<const Bits*>(&made));
    r.growth[i] = !counts ? r.growth[i] : returned ? within : 1;
    r.start[i] = !counts ? r.start[i] : returned ? start : 0;
  }
}

void count_binades(uint32_t* counts, const uint64_t* binade, const uint64_t* lanes) {
  uint64_t differ = 0, some = 0;
  for (int i = 0; i < 32; ++i) differ |= binade[i] ^ binade[0], some += lanes[i] & 1;
  if (differ == 0) {  // as of most that returns: one counter for all would wait for itself
    counts[binade[0]] += static_cast<uint32_t>(some);
    return;
  }
  for (int i = 0; i < 32; ++i) counts[binade[i]] += static_cast<uint32_t>(lanes[i] & 1);
}

}  // namespace

ShadowKit shadow_kit() {
  return {combine_tile, combine_tile_part, carry_part,     sizes_of_terms, sizes_of_probes,
          add_probe,    measure_growth,    follow_returns, count_binades};
}

}  // namespace assay::vm::ASSAY_LANES
