// f16 and bf16 on the host, under the names of cuda_fp16.h and cuda_bf16.h: exact values rounded once. The
// functions are those that the CUDA Programming Guide (5.5.7, tables 46 to 52) lists with no error: correctly
// rounded.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace assay::corpus {

enum class To { nearest, zero, down, up };

/// A format by its precision (bits of the significand), least and largest exponent.
template <int precision_, int least_, int largest_>
struct HostFormat {
  static constexpr int precision = precision_, least = least_, largest = largest_, fraction = precision_ - 1;
  static constexpr uint16_t infinity = static_cast<uint16_t>((2 * largest_ + 1) << fraction);

  static long double value(uint16_t bits) {
    const int exponent = (bits & 0x7fff) >> fraction, rest = bits & ((1 << fraction) - 1);
    long double x = exponent == 0 ? std::ldexp(static_cast<long double>(rest), least - fraction)
                                  : std::ldexp(static_cast<long double>(rest + (1 << fraction)),
                                               exponent - 1 + least - fraction);
    if (exponent == 2 * largest + 1)
      x = rest ? std::numeric_limits<long double>::quiet_NaN() : std::numeric_limits<long double>::infinity();
    return bits & 0x8000 ? -x : x;
  }

  static uint16_t rounded(long double x, To mode = To::nearest) {
    if (x != x) return 0x7fff;
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const bool outward = mode == (sign ? To::down : To::up), inward = mode != To::nearest && !outward;
    const long double magnitude = std::fabs(x);
    if (std::isinf(magnitude)) return sign | infinity;
    const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
    const long double scaled = std::ldexp(magnitude, fraction - exponent), whole = std::floor(scaled);
    const long double rest = scaled - whole;  // exact: in units of the last place
    const bool odd = std::fmod(whole, 2.0L) != 0;
    const bool more = !inward && (outward ? rest > 0 : rest > 0.5L || (rest == 0.5L && odd));
    const long double result = std::ldexp(whole + (more ? 1 : 0), exponent - fraction);
    if (result >= std::ldexp(1.0L, largest + 1))
      return static_cast<uint16_t>(sign | (inward ? infinity - 1 : infinity));
    const bool normal = result >= std::ldexp(1.0L, least);
    const int e = normal ? std::ilogb(result) : least;
    const auto steps = static_cast<uint32_t>(std::ldexp(result, fraction - e));
    return static_cast<uint16_t>(sign |
                                 ((normal ? static_cast<uint32_t>(e - least) << fraction : 0u) + steps));
  }
};

template <class F>
struct HostHalf {
  uint16_t bits = 0;
  long double value() const { return F::value(bits); }
  bool is_nan() const { return (bits & 0x7fff) > F::infinity; }
};
template <class F>
struct HostPair {
  HostHalf<F> x, y;
};
using Half16 = HostFormat<11, -14, 15>;
using Brain16 = HostFormat<8, -126, 127>;
using __half = HostHalf<Half16>;
using __nv_bfloat16 = HostHalf<Brain16>;
using __half2 = HostPair<Half16>;
using __nv_bfloat162 = HostPair<Brain16>;

/// a b + c rounded to odd at 64 bits, so that one more rounding to a half is right.
inline long double odd_sum(long double a, long double b) {
  const long double sum = a + b, back = sum - a, error = (a - (sum - back)) + (b - back);
  if (error == 0 || !std::isfinite(sum)) return sum;
  int exponent;
  const bool odd = std::fmod(std::ldexp(std::frexp(sum, &exponent), 64), 2.0L) != 0;
  return odd ? sum : std::nextafter(sum, error > 0 ? HUGE_VALL : -HUGE_VALL);
}

#define HOST_UNARY(name, expression) \
  template <class F>                 \
  HostHalf<F> name(HostHalf<F> h) {  \
    const long double x = h.value(); \
    return {F::rounded(expression)}; \
  }
#define HOST_BINARY(name, expression)               \
  template <class F>                                \
  HostHalf<F> name(HostHalf<F> g, HostHalf<F> h) {  \
    const long double x = g.value(), y = h.value(); \
    return {F::rounded(expression)};                \
  }
HOST_BINARY(__hadd, x + y)
HOST_BINARY(__hsub, x - y)
HOST_BINARY(__hmul, x* y)
HOST_BINARY(__hdiv, x / y)
HOST_UNARY(__habs, std::fabs(x))
HOST_UNARY(__hneg, -x)
HOST_UNARY(hsqrt, std::sqrt(x))
HOST_UNARY(hexp, std::exp(x))
HOST_UNARY(hexp2, std::exp2(x))
HOST_UNARY(hexp10, std::pow(10.0L, x))
HOST_UNARY(hlog, std::log(x))
HOST_UNARY(hlog2, std::log2(x))
HOST_UNARY(hlog10, std::log10(x))
HOST_UNARY(hsin, std::sin(x))
HOST_UNARY(hcos, std::cos(x))
HOST_UNARY(htanh, std::tanh(x))
HOST_UNARY(hfloor, std::floor(x))
HOST_UNARY(hceil, std::ceil(x))
HOST_UNARY(htrunc, std::trunc(x))
HOST_UNARY(hrint, std::rint(x))
#undef HOST_UNARY
#undef HOST_BINARY

/// .sat: to [+0, 1], NaN to +0; .relu: no negative number, and no -0.
template <class F>
HostHalf<F> saturated(HostHalf<F> h) {
  return h.value() > 1 ? HostHalf<F>{F::rounded(1)} : h.value() > 0 ? h : HostHalf<F>{};
}
template <class F>
HostHalf<F> relu(HostHalf<F> h) {
  return !h.is_nan() && (h.bits & 0x8000) ? HostHalf<F>{} : h;
}
template <class F>
HostHalf<F> __hfma(HostHalf<F> a, HostHalf<F> b, HostHalf<F> c) {
  return {F::rounded(odd_sum(a.value() * b.value(), c.value()))};
}
template <class F>
HostHalf<F> __hfma_sat(HostHalf<F> a, HostHalf<F> b, HostHalf<F> c) {
  return saturated(__hfma(a, b, c));
}
template <class F>
HostHalf<F> __hfma_relu(HostHalf<F> a, HostHalf<F> b, HostHalf<F> c) {
  return relu(__hfma(a, b, c));
}
template <class F>
HostHalf<F> __hadd_sat(HostHalf<F> a, HostHalf<F> b) {
  return saturated(__hadd(a, b));
}
template <class F>
HostHalf<F> __hsub_sat(HostHalf<F> a, HostHalf<F> b) {
  return saturated(__hsub(a, b));
}
template <class F>
HostHalf<F> __hmul_sat(HostHalf<F> a, HostHalf<F> b) {
  return saturated(__hmul(a, b));
}

/// The number where one is NaN; -0 below +0.
template <class F>
HostHalf<F> extreme(HostHalf<F> a, HostHalf<F> b, bool largest, bool nan) {
  if (a.is_nan() || b.is_nan())
    return (a.is_nan() && b.is_nan()) || nan ? HostHalf<F>{0x7fff} : a.is_nan() ? b : a;
  const bool less =
      a.value() < b.value() || (a.value() == b.value() && (a.bits & 0x8000) > (b.bits & 0x8000));
  return less != largest ? a : b;
}
template <class F>
HostHalf<F> __hmin(HostHalf<F> a, HostHalf<F> b) {
  return extreme(a, b, false, false);
}
template <class F>
HostHalf<F> __hmax(HostHalf<F> a, HostHalf<F> b) {
  return extreme(a, b, true, false);
}
template <class F>
HostHalf<F> __hmin_nan(HostHalf<F> a, HostHalf<F> b) {
  return extreme(a, b, false, true);
}
template <class F>
HostHalf<F> __hmax_nan(HostHalf<F> a, HostHalf<F> b) {
  return extreme(a, b, true, true);
}

/// A comparison; the functions with u in their names hold where an operand is NaN.
#define HOST_COMPARISON(name, operation, unordered)                                      \
  template <class F>                                                                     \
  bool name(HostHalf<F> a, HostHalf<F> b) {                                              \
    return a.is_nan() || b.is_nan() ? unordered : a.value() operation b.value();         \
  }                                                                                      \
  template <class F>                                                                     \
  HostPair<F> name##2(HostPair<F> a, HostPair<F> b) {                                    \
    return {{F::rounded(name(a.x, b.x) ? 1 : 0)}, {F::rounded(name(a.y, b.y) ? 1 : 0)}}; \
  }                                                                                      \
  template <class F>                                                                     \
  uint32_t name##2_mask(HostPair<F> a, HostPair<F> b) {                                  \
    return (name(a.x, b.x) ? 0xffffu : 0u) | (name(a.y, b.y) ? 0xffff0000u : 0u);        \
  }
HOST_COMPARISON(__heq, ==, false)
HOST_COMPARISON(__hlt, <, false)
HOST_COMPARISON(__hgt, >, false)
HOST_COMPARISON(__hge, >=, false)
HOST_COMPARISON(__hgtu, >, true)
HOST_COMPARISON(__hleu, <=, true)
HOST_COMPARISON(__hneu, !=, true)
#undef HOST_COMPARISON
template <class F>
bool __hbeq2(HostPair<F> a, HostPair<F> b) {
  return __heq(a.x, b.x) && __heq(a.y, b.y);
}
template <class F>
bool __hisnan(HostHalf<F> a) {
  return a.is_nan();
}

/// The same on both halves of a pair.
#define HOST_PAIRED(name, one)                         \
  template <class... Pairs>                            \
  auto name(Pairs... pairs) {                          \
    return HostPair{one(pairs.x...), one(pairs.y...)}; \
  }
HOST_PAIRED(__hadd2, __hadd)
HOST_PAIRED(__hsub2, __hsub)
HOST_PAIRED(__hmul2, __hmul)
HOST_PAIRED(__hfma2, __hfma)
HOST_PAIRED(__hfma2_relu, __hfma_relu)
HOST_PAIRED(__hmul2_sat, __hmul_sat)
HOST_PAIRED(__hsub2_sat, __hsub_sat)
HOST_PAIRED(__h2div, __hdiv)
HOST_PAIRED(__hmin2, __hmin)
HOST_PAIRED(__hmax2, __hmax)
HOST_PAIRED(__hmax2_nan, __hmax_nan)
HOST_PAIRED(h2exp2, hexp2)
HOST_PAIRED(h2sqrt, hsqrt)
HOST_PAIRED(__habs2, __habs)
HOST_PAIRED(__hneg2, __hneg)
#undef HOST_PAIRED
inline __half2 __halves2half2(__half a, __half b) {
  return {a, b};
}
inline __half __low2half(__half2 a) {
  return a.x;
}
inline __half __high2half(__half2 a) {
  return a.y;
}

/// To integers: NaN gives 0, or the least 64-bit integer; what is too large or small the nearest there is.
template <class I>
I to_integer(long double rounded) {
  if (rounded != rounded) return sizeof(I) == 8 ? static_cast<I>(uint64_t{1} << 63) : I{0};
  if (rounded <= static_cast<long double>(std::numeric_limits<I>::min()))
    return std::numeric_limits<I>::min();
  if (rounded >= static_cast<long double>(std::numeric_limits<I>::max()))
    return std::numeric_limits<I>::max();
  return static_cast<I>(rounded);
}
#define HOST_CONVERSIONS(type, name, F)                \
  inline int32_t __##name##2int_rz(type h) {           \
    return to_integer<int32_t>(std::trunc(h.value())); \
  }                                                    \
  inline uint16_t __##name##2ushort_rn(type h) {       \
    return to_integer<uint16_t>(std::rint(h.value())); \
  }                                                    \
  inline int64_t __##name##2ll_ru(type h) {            \
    return to_integer<int64_t>(std::ceil(h.value()));  \
  }                                                    \
  inline float __##name##2float(type h) {              \
    return static_cast<float>(h.value());              \
  }                                                    \
  inline type __int2##name##_rn(int32_t i) {           \
    return {F::rounded(i)};                            \
  }                                                    \
  inline type __ushort2##name##_rz(uint16_t i) {       \
    return {F::rounded(i, To::zero)};                  \
  }                                                    \
  inline type __ull2##name##_rd(uint64_t i) {          \
    return {F::rounded(i, To::down)};                  \
  }                                                    \
  inline type __float2##name##_rn(float x) {           \
    return {F::rounded(x)};                            \
  }                                                    \
  inline type __float2##name##_rz(float x) {           \
    return {F::rounded(x, To::zero)};                  \
  }                                                    \
  inline type __float2##name##_ru(float x) {           \
    return {F::rounded(x, To::up)};                    \
  }                                                    \
  inline type __double2##name(double x) {              \
    return {F::rounded(x)};                            \
  }
HOST_CONVERSIONS(__half, half, Half16)
HOST_CONVERSIONS(__nv_bfloat16, bfloat16, Brain16)
#undef HOST_CONVERSIONS
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline __half __ushort_as_half(uint16_t bits) {
  return {bits};
}
inline uint16_t __half_as_ushort(__half h) {
  return h.bits;
}
inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits) {
  return {bits};
}
inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 h) {
  return h.bits;
}

}  // namespace assay::corpus
