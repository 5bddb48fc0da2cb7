// Single precision: exact operations, and the functions of the math library.
FLOAT_PROGRAM(float_arithmetic) {
  return word(f32(a) + f32(b)) << 32 | word(f32(a) * f32(c) - f32(b));
}
FLOAT_PROGRAM(float_division) {
  return word(f32(a) / f32(b)) << 32 | word(1.0f / f32(c));
}
FLOAT_PROGRAM(float_roots) {
  return word(sqrtf(f32(a))) << 32 | word(sqrtf(f32(b) * f32(b)));
}
FLOAT_PROGRAM(float_fused) {
  return word(fmaf(f32(a), f32(b), f32(c)));
}
/// A signalling NaN made quiet: the host's fmin and fmax treat it apart.
BOTH u32 quiet(u64 a) {
  return (a & 0x7fffffffu) > 0x7f800000u ? u32(a) | 0x400000u : u32(a);
}
FLOAT_PROGRAM(float_extremes) {
  const float x = f32(quiet(a)), y = f32(quiet(b));
  return word(fminf(x, fmaxf(y, f32(quiet(c))))) << 32 | word(x < y ? x : y);
}
FLOAT_PROGRAM(float_integral) {
  const float x = f32(a);
  return word(floorf(x) + ceilf(f32(b))) << 32 | word(truncf(f32(c)) + rintf(x));
}
FLOAT_PROGRAM(float_round) {
  return word(roundf(f32(a))) << 32 | word(nearbyintf(f32(b)));
}
FLOAT_PROGRAM(float_parts) {
  int exponent = 0;
  const float fraction = frexpf(f32(a), &exponent);
  const bool finite = fraction - fraction == 0;
  return word(fraction) << 32 ^ u32(finite ? exponent : 0) ^ word(ldexpf(f32(b), int(c & 127) - 64));
}
FLOAT_PROGRAM(float_remainder) {
  return word(fmodf(f32((a & 0x8fffffffu) | 0x30000000u), f32((b & 0x8fffffffu) | 0x38000000u)));
}
FLOAT_PROGRAM(float_signs) {
  return (word(copysignf(f32(a), f32(b))) << 32) ^ word(fabsf(f32(c))) ^ u32(signbit(f32(a)) != 0) ^
         u32(isnan(f32(a)) + 2 * isinf(f32(b)) + 4 * isfinite(f32(c)));
}
FLOAT_PROGRAM(float_comparisons) {
  const float x = f32(a), y = f32(b);
  return (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 | (x != y) << 5 |
         !(x < y) << 6 | !(x >= y) << 7 | (x == x && y == y) << 8;
}
FLOAT_PROGRAM(float_next) {
  return word(nextafterf(f32(a), f32(b))) << 32 | word(fdimf(f32(b), f32(c)));
}
FLOAT_PROGRAM(float_to_integers) {
  const float x = f32((a & 0x8fffffffu) | 0x40000000u), y = x < 0 ? -x : x;  // 2 to 2^33
  const float p = x * 0x1p-4f, q = y * 0x1p-4f;
  return u64(u32(s32(p))) << 32 ^ u32(q) ^ u64(s64(x)) ^ u64(y) << 5;
}
PROGRAM(integers_to_float) {
  return word(float(s32(a)) + 0.0f) << 32 ^ word(float(u32(b))) ^ word(float(s64(c))) ^ word(float(a)) ^
         word(float(s16(a))) ^ word(float(u8(b)));
}
RUN_PROGRAM(float_directed) {
#ifdef __CUDACC__
  const float x = f32(a), y = f32(b), z = f32(c);
  return word(__fadd_rz(x, y)) ^ word(__fsub_ru(y, z)) ^ word(__fmul_rd(x, z)) ^ word(__fmaf_rz(x, y, z)) ^
         word(__fadd_ru(y, z)) ^ word(__fmaf_rd(x, y, z)) ^ word(__fmul_ru(x, y)) ^ word(__saturatef(x));
#else
  return 0;
#endif
}
#define RUN32(name, expression) \
  RUN_PROGRAM(name) {           \
    const float x = f32(a);     \
    (void)x;                    \
    return word(expression);    \
  }
#ifdef __CUDACC__
RUN32(float_sqrt_directed, __fsqrt_rz(x) + __fsqrt_ru(x) + __fsqrt_rd(x))
RUN32(float_divide_directed, __fdiv_rz(x, f32(b)) + __fdiv_ru(x, f32(c)))
RUN32(float_reciprocal_directed, __frcp_rz(x) + __frcp_rd(x) + __frcp_ru(x))
RUN32(float_fast_functions, __expf(x) + __log2f(x) + __fdividef(x, f32(b)))
RUN32(float_special, erfinvf(x) + j0f(x) + lgammaf(x) + tgammaf(x) + erfcxf(x) + normcdfinvf(x))
RUN32(float_fast_sine, __sinf(x))
RUN32(float_fast_power, __powf(x, 2.5f) + __logf(x))
RUN32(float_hyperbolic_approximate, __tanhf(x))
#else
RUN32(float_sqrt_directed, x)
RUN32(float_divide_directed, x)
RUN32(float_reciprocal_directed, x)
RUN32(float_fast_functions, x)
RUN32(float_special, x)
RUN32(float_fast_sine, x)
RUN32(float_fast_power, x)
RUN32(float_hyperbolic_approximate, x)
#endif
MATH32(exp, 2, -80, 80, exp(x))
MATH32(exp2, 2, -120, 120, exp2(x))
MATH32(exp10, 2, -30, 30, exp10(x))
MATH32(expm1, 1, -10, 40, expm1(x))
MATH32(log, 1, 0.001, 1000, log(x))
MATH32(log2, 1, 0.001, 1000, log2(x))
MATH32(log10, 2, 0.001, 1000, log10(x))
MATH32(log1p, 1, -0.9, 100, log1p(x))
MATH32(sin, 2, -100, 100, sin(x))
MATH32(cos, 2, -100, 100, cos(x))
MATH32(tan, 4, -100, 100, tan(x))
MATH32(sin_far, 2, -1e9, 1e9, sin(x))
MATH32(asin, 2, -1, 1, asin(x))
MATH32(acos, 2, -1, 1, acos(x))
MATH32(atan, 2, -10, 10, atan(x))
MATH32(atan2, 3, -10, 10, atan2(x, y))
MATH32(sinh, 3, -20, 20, sinh(x))
MATH32(cosh, 2, -20, 20, cosh(x))
MATH32(tanh, 2, -3, 3, tanh(x))
MATH32(asinh, 3, -50, 50, asinh(x))
MATH32(acosh, 4, 1, 50, acosh(x))
MATH32(atanh, 3, -0.99, 0.99, atanh(x))
MATH32(pow, 4, 0.1, 10, pow(x, y))
MATH32(cbrt, 1, -1000, 1000, cbrt(x))
MATH32(rsqrt, 2, 0.001, 1000, rsqrt(x))
MATH32(rcbrt, 1, 0.001, 1000, rcbrt(x))
MATH32(erf, 2, -3, 3, erf(x))
MATH32(erfc, 4, -3, 8, erfc(x))
MATH32(normcdf, 5, -5, 5, normcdf(x))
MATH32(hypot, 3, -100, 100, hypot(x, y))
MATH32(norm3d, 3, -100, 100, norm3df(x, y, z))
MATH32(sinpi, 1, -10, 10, sinpi(x))
MATH32(cospi, 1, -10, 10, cospi(x))
