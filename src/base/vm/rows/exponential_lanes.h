// 2^x - d of 32 lanes: the steps of exponential2_minus (real_exponential.h) on eight at once, the same bits.
// Included by lane rows only, which link nothing that is compiled for another processor: what
// numerics/double_double.h has as inline functions stands here once more, for vectors.
#pragma once
#include "src/base/vm/real_exponential.h"
#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {
namespace exponentials {

typedef double Eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t EightBits __attribute__((vector_size(64), aligned(8), may_alias));

/// Unevaluated sums.
struct Pairs {
  Eight hi, lo;
};

#define ASSAY_EACH [[gnu::always_inline]] inline
ASSAY_EACH void sum_of(Pairs& y, const Eight& a, const Eight& b) {
  const Eight s = a + b, bb = s - a;
  y.lo = (a - (s - bb)) + (b - bb), y.hi = s;
}
ASSAY_EACH void quick_sum_of(Pairs& y, const Eight& a, const Eight& b) {
  const Eight s = a + b;
  y.lo = b - (s - a), y.hi = s;
}
ASSAY_EACH void product_of(Pairs& y, const Eight& a, const Eight& b) {
  const Eight ta = 0x8000001p0 * a, tb = 0x8000001p0 * b;
  const Eight ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh, p = a * b;
  y.lo = ((ah * bh - p) + ah * bl + al * bh) + al * bl, y.hi = p;
}
ASSAY_EACH void add(Pairs& y, const Pairs& a, const Pairs& b) {
  Pairs s, t, v;
  sum_of(s, a.hi, b.hi), sum_of(t, a.lo, b.lo);
  quick_sum_of(v, s.hi, s.lo + t.hi);
  quick_sum_of(y, v.hi, t.lo + v.lo);
}
ASSAY_EACH void multiply(Pairs& y, const Pairs& a, const Pairs& b) {
  Pairs c;
  product_of(c, a.hi, b.hi);
  quick_sum_of(y, c.hi, c.lo + (a.hi * b.lo + a.lo * b.hi));
}

/// local[i] = 2^x[i] - d[i]; false where an argument is too large for these steps.
ASSAY_EACH bool minus(double* local, const double* x, const double* d, const double* powers) {
  constexpr double kInteger = 0x1.8p52;  // added, it leaves a number's nearest integer in the last bits
  const auto bits_of = [](double value) { return __builtin_bit_cast(int64_t, value); };
  const Eight zeros{};
  Pairs z, r, s, t, m, power, y;
  multiply(z, Pairs{zeros + kLn2High, zeros + kLn2Low}, Pairs{*reinterpret_cast<const Eight*>(x), zeros});
  const EightBits large = ~((z.hi >= -600.0) & (z.hi <= 600.0));
  z.hi = large ? zeros : z.hi, z.lo = large ? zeros : z.lo;
  const Eight placed = z.hi * 0x1.71547652b82fep+0 + kInteger, n = placed - kInteger;
  add(r, z, Pairs{-(n * 0x1.62e42fefa38p-1), -zeros});
  add(r, r, Pairs{-(n * 0x1.ef35793c76p-45), -zeros});
  add(r, r, Pairs{-(n * 0x1.cc01f97b57a08p-87), -zeros});
  const Eight step = r.hi * 1024.0 + kInteger, j = step - kInteger;
  sum_of(s, r.hi - j / 1024.0, r.lo);
  const EightBits at = reinterpret_cast<const EightBits&>(step) - bits_of(kInteger);
  alignas(64) double of_step[2][8];
  for (int i = 0; i < 8; ++i) of_step[0][i] = powers[2 * at[i]], of_step[1][i] = powers[2 * at[i] + 1];
  power.hi = *reinterpret_cast<const Eight*>(of_step[0]),
  power.lo = *reinterpret_cast<const Eight*>(of_step[1]);
  const Eight q = 1.0 / 24 + s.hi * (1.0 / 120 + s.hi * (1.0 / 720 + s.hi * (1.0 / 5040)));
  add(t, Pairs{zeros + 0x1.5555555555555p-3, zeros + 0x1.5555555555555p-57}, Pairs{s.hi * q, zeros});
  multiply(t, s, t);
  add(t, Pairs{zeros + 0.5, zeros}, t);
  multiply(m, s, s), multiply(m, m, t), add(m, s, m);
  multiply(y, power, m), add(y, power, y);
  const EightBits scale = (reinterpret_cast<const EightBits&>(placed) - bits_of(kInteger) + 1023) << 52;
  const Eight by = reinterpret_cast<const Eight&>(scale);
  *reinterpret_cast<Eight*>(local) = (y.hi * by - *reinterpret_cast<const Eight*>(d)) + y.lo * by;
  int64_t some = 0;
  for (int i = 0; i < 8; ++i) some |= large[i];
  return some == 0;
}
#undef ASSAY_EACH

/// Of all lanes.
inline void minus_all(double* local, const double* x, const double* d) {
  const double* const powers = exponential_powers();
  for (int i = 0; i < 32; i += 8)
    if (!minus(local + i, x + i, d + i, powers))
      for (int k = i; k < i + 8; ++k) local[k] = exponential2_minus(x[k], d[k]);
}

}  // namespace exponentials
}  // namespace assay::vm::ASSAY_LANES
