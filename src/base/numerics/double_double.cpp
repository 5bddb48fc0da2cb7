#include "src/base/numerics/double_double.h"

#include <bit>
#include <cstdint>

namespace assay {
namespace {

/// 1 / i! for i = 2..8.
constexpr double kInverseFactorial[][2] = {
    {0x1p-1, 0},
    {0x1.5555555555555p-3, 0x1.5555555555555p-57},
    {0x1.5555555555555p-5, 0x1.5555555555555p-59},
    {0x1.1111111111111p-7, 0x1.1111111111111p-63},
    {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
    {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
    {0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76},
};

/// x - n ln 2. ln 2 = h1 + h2 + h3 with 42 bits each in h1 and h2: n h1 and n h2 are exact for |n| < 2^11, n
/// h3 errs by < 2^-129, h3 by < 2^-140 n; three additions of relative error 3 u^2 with results below 0.36: <
/// 2^-103.
DoubleDouble reduce(DoubleDouble x, double n) {
  constexpr double h1 = 0x1.62e42fefa38p-1, h2 = 0x1.ef35793c76p-45, h3 = 0x1.cc01f97b57a08p-87;
  return ((x - n * h1) - n * h2) - n * h3;
}

// e^r = (1 + m)^512, m = expm1(s), s = r / 512, |s| < 6.8e-4. Taylor to s^8 / 8!: the rest is s^9 / 9! <
// 2^-113, relative to s < 2^-102.5; Horner adds < 2^-102. Nine times m <- 2 m + m^2, which is expm1 of the
// doubled argument: each step rounds by < 2^-102.4 relative and multiplies the relative error by (1 + m) / (1
// + m / 2), together by e^0.43 < 1.6. So rel(m) < 1.6 (9 2^-102.4 + 2^-101.2) < 2^-98.2, and with |m| <= 0.42
// e^r errs by < 2^-98.9 relative, the last sum included.
DoubleDouble exp_by_squaring(double r) {
  const DoubleDouble s = r * 0x1p-9;
  DoubleDouble t(kInverseFactorial[6][0], kInverseFactorial[6][1]);
  for (int i = 5; i >= 0; --i) t = DoubleDouble(kInverseFactorial[i][0], kInverseFactorial[i][1]) + s * t;
  DoubleDouble m = s + s * (s * t);
  for (int i = 0; i < 9; ++i) m = DoubleDouble(2 * m.hi, 2 * m.lo) + m * m;
  return DoubleDouble(1) + m;
}

/// e^(j / kSteps) for |j| <= kMost: |r| < 0.34658 has |j| <= 355.
constexpr int kSteps = 1024, kMost = 356;
struct Powers {
  DoubleDouble of[2 * kMost + 1];
  Powers() {
    for (int j = -kMost; j <= kMost; ++j) of[j + kMost] = exp_by_squaring(static_cast<double>(j) / kSteps);
  }
};

const Powers& powers() {
  static const Powers made;
  return made;
}

}  // namespace

const DoubleDouble* powers_of_e() {
  return &powers().of[kMost];
}

// e^x = 2^n e^(j / 1024) e^s with r = x - n ln 2, s = r - j / 1024, |s| < 2^-10.99. s is exact: r.hi and
// j / 1024 are within a factor of two, or j = 0. e^s = 1 + s + s^2 (1/2 + s t), t = 1/6 + s (1/24 + s/120 +
// s^2/720 + s^3/5040) with what follows 1/6 in doubles. In units of e^s: the rest of the series is below
// 1.001 s^8/8! < 2^-103; the polynomial behind 1/24 errs by < 1.1 u / 24, times s^4: < 2^-101; its product
// with s.hi in place of s by < 2^-15.5 u + 2^-68, times |s|^3: < 2^-100; what is rounded in double-double is
// below 2^-10 or the last sum, < 2^-104. With the power's 2^-98.9 and the reduction's 2^-103: < 2^-98. The
// stated 2^-96 leaves a factor of four.
DoubleDouble exp(DoubleDouble x) {
  if (!(x.hi >= kDoubleDoubleExponentialMin)) return x.hi != x.hi ? x : DoubleDouble(0);
  if (x.hi > 600) return __builtin_inf();
  const double n = std::nearbyint(x.hi * 0x1.71547652b82fep+0);
  const DoubleDouble r = reduce(x, n);
  const double j = std::nearbyint(r.hi * kSteps);
  const DoubleDouble s = two_sum(r.hi - j / kSteps, r.lo);
  const double q = 1.0 / 24 + s.hi * (1.0 / 120 + s.hi * (1.0 / 720 + s.hi * (1.0 / 5040)));
  const DoubleDouble t = DoubleDouble(kInverseFactorial[1][0], kInverseFactorial[1][1]) + s.hi * q;
  const DoubleDouble m = s + s * s * (DoubleDouble(0.5) + s * t);
  const DoubleDouble& power = powers().of[static_cast<int>(j) + kMost];
  const DoubleDouble y = power + power * m;
  const double scale = std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
  return {y.hi * scale, y.lo * scale};
}

}  // namespace assay
