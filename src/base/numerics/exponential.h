// e^x in double with a proved error: the platform's exp promises none that is written down everywhere.
#pragma once
#include <cstdint>
#include <cstring>

namespace assay {

/// |exponential(x) - e^x| <= kExponentialError * e^x for x in [kExponentialMin, 709]; below it 0 (e^x <
/// 2^-1021 there).
inline constexpr double kExponentialError = 4 * 0x1p-53;
inline constexpr double kExponentialMin = -708;

/// e^x for x <= 709; above that infinity; NaN for NaN. No branches in the middle: loops over it vectorise.
///
/// n = round(x / ln 2), r = x - n ln 2, e^x = 2^n e^r, |r| <= 0.3467.
/// Reduction: ln 2 = hi + lo + e, hi has 42 bits, so n hi is exact (|n| < 2^11) and so is x - n hi (Sterbenz,
/// or n = 0); |n e| < 2^-86, fl(n lo) errs by < 2^-85; the last subtraction by u |r|: e^r moves by 0.36 u.
/// Polynomial: Taylor to r^13 / 13!; the rest is r^14 / 14! e^|r| < 2^-57. Horner y_i = fl(1 / i! + fl(r
/// y_i+1)), written with y_0 = 1 + r y_1, y_1 = 1 + r y_2: rel(y_1) <= u + (0.25 / 0.84)(1 + 1.5) u < 1.8 u,
/// hence |error(y_0)| <= u y_0 + |r y_1| (1 + 1.8) u <= u y_0 + 1.16 u, and with y_0 >= 0.707 rel(y_0)
/// <= 2.65 u. Total 2.65 + 0.36 + 0.06 (+ second order) < 4 u. The scaling by 2^n is exact.
inline double exponential(double x) {
  constexpr double log2_e = 0x1.71547652b82fep+0, magic = 0x1.8p+52;
  constexpr double ln2_hi = 0x1.62e42fefa38p-1, ln2_lo = 0x1.ef35793c7673p-45;
  const double clamped = x < kExponentialMin ? kExponentialMin : (x > 709 ? 709 : x);
  const double shifted = clamped * log2_e + magic;
  const double n = shifted - magic;
  const double r = (clamped - n * ln2_hi) - n * ln2_lo;
  double y = 0x1.6124613a86d09p-33;   // 1 / 13!
  y = 0x1.1eed8eff8d898p-29 + r * y;  // 1 / 12!
  y = 0x1.ae64567f544e4p-26 + r * y;
  y = 0x1.27e4fb7789f5cp-22 + r * y;
  y = 0x1.71de3a556c734p-19 + r * y;
  y = 0x1.a01a01a01a01ap-16 + r * y;
  y = 0x1.a01a01a01a01ap-13 + r * y;
  y = 0x1.6c16c16c16c17p-10 + r * y;
  y = 0x1.1111111111111p-7 + r * y;
  y = 0x1.5555555555555p-5 + r * y;
  y = 0x1.5555555555555p-3 + r * y;
  y = 0.5 + r * y;
  y = 1 + r * y;
  y = 1 + r * y;
  uint64_t bits, scale_bits;
  std::memcpy(&bits, &shifted, 8);  // the low bits of the shifted value are n
  scale_bits = (bits + 1023) << 52;
  double scale;
  std::memcpy(&scale, &scale_bits, 8);
  const double value = y * scale;
  return x < kExponentialMin ? 0.0 : (x > 709 ? __builtin_inf() : value);
}

}  // namespace assay
