#include "src/case/random.h"

#include <array>
#include <cmath>

#include "src/base/numerics/fnv.h"
#include "src/case/portable_constants.h"
#include "src/case/row_draws.h"

namespace assay {
namespace {

/// Bijection of 64-bit words with full avalanche (the finaliser of SplitMix64; Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <size_t N>
double horner(const std::array<double, N>& coefficients, double x) {
  double sum = 0;
  for (double c : coefficients) sum = sum * x + c;
  return sum;
}

/// Of the channel, in the counter of an element.
constexpr uint64_t kChannelStep = 0x165667b19e3779f9u;

/// Odd multipliers: distinct coordinates of any real tensor give distinct counters up to chance collisions.
uint64_t counter_of(const Coordinates& at, uint64_t lane) {
  return static_cast<uint64_t>(at.b) * 0xd1342543de82ef95u +
         static_cast<uint64_t>(at.t) * 0x9e3779b97f4a7c15u +
         static_cast<uint64_t>(at.h) * 0xc2b2ae3d27d4eb4fu + static_cast<uint64_t>(at.c) * kChannelStep +
         lane * 0xff51afd7ed558ccdu;
}

}  // namespace

RandomStream::RandomStream(uint64_t seed, std::string_view name) {
  key_ = mix(mix(seed + 0x9e3779b97f4a7c15u) ^ fnv1a(name));
}

uint64_t RandomStream::bits(const Coordinates& at, uint64_t lane) const {
  return mix(key_ ^ mix(counter_of(at, lane)));
}

double RandomStream::uniform(const Coordinates& at, uint64_t lane) const {
  return (static_cast<double>(bits(at, lane) >> 12) + 0.5) * 0x1p-52;
}

double RandomStream::normal(const Coordinates& at, uint64_t lane) const {
  return normal_quantile(uniform(at, lane));
}

int64_t RandomStream::below(int64_t n, const Coordinates& at, uint64_t lane) const {
  const auto wide = static_cast<unsigned __int128>(bits(at, lane)) * static_cast<uint64_t>(n);
  return static_cast<int64_t>(wide >> 64);
}

void RandomStream::uniforms(const Coordinates& first, int64_t count, double* out) const {
  row_draws().uniforms(key_, counter_of(first, 0), kChannelStep, count, out);
}

void RandomStream::normals(const Coordinates& first, int64_t count, double* out) const {
  uniforms(first, count, out);
  row_draws().normal_quantiles(count, out);
}

double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [1/2, 1); exact
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  // log m = 2 atanh(s), s = (m-1)/(m+1), |s| < 0.1716: the first omitted term is below s^23/23 < 2^-60.
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2) sum = sum * s2 + 1.0 / n;
  return exponent * kLn2High + (2 * s * sum + exponent * kLn2Low);
}

double portable_exp(double x) {
  if (x < -745) return 0;
  if (x > 709) return INFINITY;
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| < 0.347
  double sum = 1;
  for (int n = 15; n >= 1; --n) sum = 1 + sum * r / n;  // remainder below 0.347^16/16! < 2^-68
  return std::ldexp(sum, static_cast<int>(k));
}

double normal_quantile(double p) {
  // Rational approximation by P. J. Acklam (2003): central region, and tails in sqrt(-2 log p).
  static constexpr std::array<double, 6> c{-7.784894002430293e-03, -3.223964580411365e-01,
                                           -2.400758277161838e+00, -2.549732539343734e+00,
                                           4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr std::array<double, 5> d{7.784695709041462e-03, 3.224671290700398e-01,
                                           2.445134137142996e+00, 3.754408661907416e+00, 1.0};
  if (p < kQuantileTail) {
    const double r = std::sqrt(-2 * portable_log(p));
    return horner(c, r) / horner(d, r);
  }
  if (p > 1 - kQuantileTail) {
    const double r = std::sqrt(-2 * portable_log(1 - p));
    return -horner(c, r) / horner(d, r);
  }
  const double x = p - 0.5, r = x * x;
  return x * horner(kCentralAbove, r) / horner(kCentralBelow, r);
}

}  // namespace assay
