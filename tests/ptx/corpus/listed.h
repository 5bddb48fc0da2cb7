// The host's list of the corpus programs.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace assay::corpus {

/// Every program runs in two blocks of 64 threads.
constexpr uint32_t block_threads = 64, total_threads = 128;

/// A program as the test sees it.
struct Listed {
  const char* name;
  bool is_float;     ///< -use_fast_math may change its words
  double ulps;       ///< 0: the words are exact; -1: unpredictable
  double low, high;  ///< domain of a, b and c as floating-point numbers; both 0: any bits
  unsigned long long (*result)(uint32_t, unsigned long long, unsigned long long, unsigned long long);
};

inline std::vector<Listed>& programs() {
  static std::vector<Listed> all;
  return all;
}
inline bool list_program(const Listed& program) {
  programs().push_back(program);
  return true;
}

/// Words of all threads, for programs in which threads exchange values.
struct Inputs {
  std::vector<unsigned long long> a, b, c;
};
inline Inputs in;

// The overloads for long double, which the global names lack.
using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::cbrt, std::ceil,
    std::copysign, std::cos, std::cosh, std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::fabs,
    std::floor, std::fma, std::fmax, std::fmin, std::hypot, std::isfinite, std::isinf, std::isnan, std::ldexp,
    std::log, std::log10, std::log1p, std::log2, std::pow, std::rint, std::round, std::signbit, std::sin,
    std::sinh, std::sqrt, std::tan, std::tanh, std::trunc;
// Functions that CUDA has and <cmath> has not.
inline long double rsqrt(long double x) {
  return 1 / sqrtl(x);
}
inline long double rcbrt(long double x) {
  return 1 / cbrtl(x);
}
inline long double exp10(long double x) {
  return powl(10, x);
}
inline long double sinpi(long double x) {
  return sinl(M_PIl * (x - 2 * roundl(x / 2)));
}
inline long double cospi(long double x) {
  return cosl(M_PIl * (x - 2 * roundl(x / 2)));
}
inline long double normcdf(long double x) {
  return erfcl(-x * M_SQRT1_2l) / 2;
}
inline long double norm3d(long double x, long double y, long double z) {
  return sqrtl(x * x + y * y + z * z);
}
inline long double norm3df(long double x, long double y, long double z) {
  return norm3d(x, y, z);
}
inline long double rhypot(long double x, long double y) {
  return 1 / sqrtl(x * x + y * y);
}

}  // namespace assay::corpus
