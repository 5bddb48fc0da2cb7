// Double precision: exact operations, and the functions of the math library.
FLOAT_PROGRAM(double_arithmetic) {
  return word(f64(a) + f64(b)) ^ word(f64(a) * f64(c) - f64(b));
}
FLOAT_PROGRAM(double_division) {
  return word(f64(a) / f64(b)) ^ word(1.0 / f64(c));
}
FLOAT_PROGRAM(double_roots) {
  return word(sqrt(f64(a))) ^ word(sqrt(f64(b) * 0.5));
}
FLOAT_PROGRAM(double_fused) {
  return word(fma(f64(a), f64(b), f64(c)));
}
FLOAT_PROGRAM(double_integral) {
  return word(floor(f64(a))) ^ word(ceil(f64(b))) ^ word(trunc(f64(c))) ^ word(rint(f64(a))) ^
         word(round(f64(b)));
}
FLOAT_PROGRAM(double_parts) {
  const double x = f64(a), y = f64(b);
  return word(fmax(x, fmin(y, f64(c)))) ^ word(copysign(x, y)) ^ word(fabs(y)) ^
         word(ldexp(x, int(c & 255) - 128)) ^ u64(isnan(x) + 2 * isfinite(y));
}
FLOAT_PROGRAM(double_conversions) {
  const double x = f64((a & 0x800fffffffffffffull) | 0x41c0000000000000ull);  // 2^29 to 2^30
  return u64(s64(x)) ^ u64(u32(s32(x))) << 32 ^ word(float(x)) ^ word(double(s64(b))) ^ word(double(u32(c))) ^
         word(double(b)) ^ word(double(f32(c)));
}
FLOAT_PROGRAM(double_comparisons) {
  const double x = f64(a), y = f64(b);
  return (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 | (x != y) << 5 |
         !(x < y) << 6;
}
#ifdef __CUDACC__
#define RUN64(name, expression) \
  RUN_PROGRAM(name) {           \
    const double x = f64(a);    \
    return word(expression);    \
  }
#else
#define RUN64(name, expression) \
  RUN_PROGRAM(name) {           \
    return 0;                   \
  }
#endif
RUN64(double_directed,
      __dadd_rz(x, f64(b)) + __dmul_ru(x, f64(b)) + __fma_rd(x, f64(b), f64(c)) + __dsub_ru(x, f64(c)))
RUN64(double_quotients_directed, __ddiv_rz(x, f64(b)) + __dsqrt_ru(x) + __drcp_rd(x))
RUN64(double_narrowed, double(__double2float_rz(x)) + __double2int_ru(x) + double(__double2ull_rd(x)))
RUN64(double_words,
      __hiloint2double(__double2loint(x), __double2hiint(x)) + __ll2double_rz(s64(b)) + __ull2double_ru(c))
RUN64(double_special, erfinv(x) + j1(x) + lgamma(x) + tgamma(x) + erfcx(x))
MATH64(exp, 1, -80, 80, exp(x))
MATH64(exp2, 1, -120, 120, exp2(x))
MATH64(exp10, 1, -30, 30, exp10(x))
MATH64(expm1, 1, -10, 40, expm1(x))
MATH64(log, 1, 0.001, 1000, log(x))
MATH64(log2, 1, 0.001, 1000, log2(x))
MATH64(log10, 1, 0.001, 1000, log10(x))
MATH64(log1p, 1, -0.9, 100, log1p(x))
MATH64(sin, 2, -100, 100, sin(x))
MATH64(cos, 2, -100, 100, cos(x))
MATH64(tan, 2, -100, 100, tan(x))
MATH64(asin, 2, -1, 1, asin(x))
MATH64(acos, 2, -1, 1, acos(x))
MATH64(atan, 2, -10, 10, atan(x))
MATH64(sinh, 2, -20, 20, sinh(x))
MATH64(cosh, 1, -20, 20, cosh(x))
MATH64(tanh, 1, -3, 3, tanh(x))
MATH64(asinh, 3, -50, 50, asinh(x))
MATH64(pow, 2, 0.1, 10, pow(x, y))
MATH64(cbrt, 1, -1000, 1000, cbrt(x))
MATH64(rsqrt, 1, 0.001, 1000, rsqrt(x))
MATH64(erf, 2, -3, 3, erf(x))
MATH64(erfc, 5, -3, 8, erfc(x))
MATH64(hypot, 2, -100, 100, hypot(x, y))
