// Counter-based random numbers with the same bits on every host: integers, and doubles made from them by
// operations that IEEE 754 rounds exactly (+ - * / sqrt). The C library's exp and log differ between
// versions: not used.
#pragma once
#include <cstdint>
#include <string_view>

namespace assay {

/// Coordinates of one element: batch, time (within its own sequence), head, channel. Keyed by coordinates,
/// not by the flat index, so that a smaller case keeps the values of the elements it keeps.
struct Coordinates {
  int64_t b = 0, t = 0, h = 0, c = 0;
};

/// One stream per (seed, name); every draw is a pure function of (stream, coordinates, lane).
class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view name);

  uint64_t bits(const Coordinates& at, uint64_t lane = 0) const;
  /// Strictly inside (0, 1): (k + 1/2) 2^-52 for a 52-bit k.
  double uniform(const Coordinates& at, uint64_t lane = 0) const;
  /// Standard normal through the inverse of its distribution function.
  double normal(const Coordinates& at, uint64_t lane = 0) const;
  /// Integer in [0, n), n >= 1.
  int64_t below(int64_t n, const Coordinates& at, uint64_t lane = 0) const;
  /// uniform and normal (lane 0) of `count` channels from `first` on, the same bits.
  void uniforms(const Coordinates& first, int64_t count, double* out) const;
  void normals(const Coordinates& first, int64_t count, double* out) const;

 private:
  uint64_t key_;
};

/// Natural logarithm for x > 0, and exponential, from exactly rounded operations only; relative error below
/// 2^-50 (absolute for the logarithm near 1).
double portable_log(double x);
double portable_exp(double x);
/// Quantile of the standard normal distribution, relative error below 2e-9, for p in (0, 1).
double normal_quantile(double p);

}  // namespace assay
