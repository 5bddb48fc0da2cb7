// The exponential, the logistic function and its integral in fp32, accurate to a few roundings over the whole
// range: a small value keeps its digits, nothing is clamped, nothing cancels. u = 2^-24. Results below 2^-126
// are subnormal numbers with an absolute error of 2^-150 per operation.
#pragma once
#include "../device/instruction.cuh"

// high + low exactly, low at most half a unit in the last place of high.
struct Sum {
  float high, low;

  // a + b without an error (Knuth's two-sum); an infinite sum has no low part.
  static __device__ Sum of(float a, float b) {
    const float sum = a + b, second = sum - a;
    const float low = (a - (sum - second)) + (b - second);
    return {sum, low == low ? low : 0.0f};
  }
  // A running sum whose roundings are summed beside it: over n terms u |sum| + (n u)^2 sum |x|.
  __device__ void add(float x) {
    const Sum next = of(high, x);
    high = next.high, low += next.low;
  }
  __device__ void add(const Sum& x) {
    add(x.high);
    low += x.low;
  }
  __device__ float value() const { return high + low; }
};

// e^x, |x| <= 110: relative error <= 2 u.
// n = x / ln 2 rounded, r = x - n ln 2 with |r| <= 0.3467: n ln2_high has 8 bits more than a float, its
// lowest one 2^-21, so that x - n ln2_high is exact; r is rounded once (2^-26).
// Seven terms of e^r: the first one left out is 0.09 u; Horner's roundings are u at the last step, 0.25 u at
// the one before, 0.06 u at the others.
struct Exponent {
  float shifted, n, rest;  // n + 1.5 2^23, of which shifts by 23 leave n, n, x - n ln2_high

  static __device__ __forceinline__ Exponent of(float x) {
    constexpr float log2_e = 0x1.715476p+0f, ln2_high = 0x1.62e43p-1f;
    const float shifted = fused(x, log2_e, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
    return {shifted, n, fused(n, -ln2_high, x)};
  }
  static __device__ __forceinline__ float power(float r) {
    float sum = 0x1.a01a02p-13f;           // 1 / 7!
    sum = fused(sum, r, 0x1.6c16c2p-10f);  // 1 / 6!
    sum = fused(sum, r, 0x1.111112p-7f);   // 1 / 5!
    sum = fused(sum, r, 0x1.555556p-5f);   // 1 / 4!
    sum = fused(sum, r, 0x1.555556p-3f);   // 1 / 3!
    sum = fused(sum, r, 0.5f);
    sum = fused(sum, r, 1.0f);
    return fused(sum, r, 1.0f);
  }
  // e^r 2^n in two factors: only the second one can round, overflow or underflow.
  __device__ __forceinline__ float scaled(float r) const {
    const int whole = __float_as_int(shifted), half = whole >> 1;
    return power(r) * __int_as_float((half + 127) << 23) * __int_as_float((whole - half + 127) << 23);
  }
  // The same for n <= 0.
  __device__ __forceinline__ float scaled_down(float r) const {
    return power(r) * __int_as_float((__float_as_int(shifted) + 64 + 127) << 23) * 0x1p-64f;
  }
};
constexpr float ln2_low = -0x1.05c61p-29f;
// Beyond +-110 the result is 0 or infinite all the same.
constexpr float edge = 110.0f;

// e^x, e^{-|z|} and e^{-|high + low|}.
__device__ __forceinline__ float exponential(float x) {
  const Exponent e = Exponent::of(fabsf(x) > edge ? copysignf(edge, x) : x);
  return e.scaled(e.rest + e.n * -ln2_low);
}
__device__ __forceinline__ float falling_exponential(float z) {
  const float x = -fabsf(z);
  const Exponent e = Exponent::of(x < -edge ? -edge : x);
  return e.scaled_down(e.rest + e.n * -ln2_low);
}
__device__ __forceinline__ float falling_exponential(const Sum& z) {
  const float x = -fabsf(z.high), low = z.high > 0.0f ? -z.low : z.low;
  const bool beyond = x < -edge;
  const Exponent e = Exponent::of(beyond ? -edge : x);
  return e.scaled_down(e.rest + fused(e.n, -ln2_low, beyond ? 0.0f : low));
}

// log(1 + e) for 0 <= e <= 1: relative error <= 4.5 u. With s = e / (2 + e) <= 1/3 it is 2 s (1 + s^2/3 +
// s^4/5 + ..); what follows s^14/15 is 0.03 u of it. s has two roundings, which count 1.08 times, the sum one
// (0.07 of the others), the product one.
__device__ __forceinline__ float log_one_plus(float e) {
  const float s = e / (2.0f + e), square = s * s;
  float sum = 0x1.111112p-4f;                // 1 / 15
  sum = fused(sum, square, 0x1.3b13b2p-4f);  // 1 / 13
  sum = fused(sum, square, 0x1.745d18p-4f);  // 1 / 11
  sum = fused(sum, square, 0x1.c71c72p-4f);  // 1 / 9
  sum = fused(sum, square, 0x1.24924ap-3f);  // 1 / 7
  sum = fused(sum, square, 0x1.99999ap-3f);  // 1 / 5
  sum = fused(sum, square, 0x1.555556p-2f);  // 1 / 3
  sum = fused(sum, square, 1.0f);
  return (s + s) * sum;
}

// log(1 + e^z) = max(z, 0) + log(1 + e^{-|z|}): relative error <= 9 u: 2 u of the exponential (the logarithm
// moves by less), 4.5 u of the logarithm, and for z > 0 one rounding of each of two sums.
__device__ __forceinline__ float softplus(float z) {
  return fmaxf(z, 0.0f) + log_one_plus(falling_exponential(z));
}
__device__ __forceinline__ float softplus(const Sum& z) {
  const float tail = log_one_plus(falling_exponential(z));
  return z.high > 0.0f ? z.high + (z.low + tail) : tail;
}

// 1 / (1 + e^{-z}) and its complement 1 / (1 + e^z), each with a relative error <= 5 u: of e = e^{-|z|} 2 u
// at most, 1 + e and its reciprocal u each, and u of the product e / (1 + e) that the smaller one is.
struct Logistic {
  float at, complement;

  // Their product.
  static __device__ __forceinline__ float slope(float z) {
    const float e = falling_exponential(z), larger = 1.0f / (1.0f + e);
    return larger * (e * larger);
  }

  static __device__ __forceinline__ Logistic of(float z) { return of(z, falling_exponential(z)); }
  static __device__ __forceinline__ Logistic of(const Sum& z) { return of(z.high, falling_exponential(z)); }

 private:
  static __device__ __forceinline__ Logistic of(float z, float e) {
    const float larger = 1.0f / (1.0f + e), smaller = e * larger;
    return z > 0.0f ? Logistic{larger, smaller} : Logistic{smaller, larger};
  }
};
