// f16 and bf16: the arithmetic, conversions, comparisons and functions of cuda_fp16.h and cuda_bf16.h.
#ifndef __CUDACC__
#define __device__
#endif
/// A program of exact operations on halves, or of functions that are correctly rounded; RUN: neither.
#define HALF_PROGRAM(kind, name, expression)                                                               \
  kind(name) {                                                                                             \
    const __half x = __ushort_as_half(u16(a)), y = __ushort_as_half(u16(b)), z = __ushort_as_half(u16(c)); \
    (void)x, (void)y, (void)z;                                                                             \
    return __half_as_ushort(expression);                                                                   \
  }
#define BRAIN_PROGRAM(kind, name, expression)                                               \
  kind(name) {                                                                              \
    const __nv_bfloat16 x = __ushort_as_bfloat16(u16(a)), y = __ushort_as_bfloat16(u16(b)), \
                        z = __ushort_as_bfloat16(u16(c));                                   \
    (void)x, (void)y, (void)z;                                                              \
    return __bfloat16_as_ushort(expression);                                                \
  }
#define HALF(name, expression) HALF_PROGRAM(FLOAT_PROGRAM, name, expression)
#define BRAIN(name, expression) BRAIN_PROGRAM(FLOAT_PROGRAM, name, expression)
#ifdef __CUDACC__
#define RUN_HALF(name, expression) HALF_PROGRAM(RUN_PROGRAM, name, expression)
#define RUN_BRAIN(name, expression) BRAIN_PROGRAM(RUN_PROGRAM, name, expression)
#else
#define RUN_HALF(name, expression) \
  RUN_PROGRAM(name) {              \
    return 0;                      \
  }
#define RUN_BRAIN RUN_HALF
#endif
static __device__ __half2 pair(u64 a) {
  return {__ushort_as_half(u16(a)), __ushort_as_half(u16(a >> 16))};
}
static __device__ u32 pair_word(__half2 x) {
  return __half_as_ushort(x.x) | u32(__half_as_ushort(x.y)) << 16;
}
static __device__ __nv_bfloat162 brain_pair(u64 a) {
  return {__ushort_as_bfloat16(u16(a)), __ushort_as_bfloat16(u16(a >> 16))};
}
static __device__ u32 pair_word(__nv_bfloat162 x) {
  return __bfloat16_as_ushort(x.x) | u32(__bfloat16_as_ushort(x.y)) << 16;
}
#define PAIR(name, expression)                           \
  FLOAT_PROGRAM(name) {                                  \
    const __half2 x = pair(a), y = pair(b), z = pair(c); \
    (void)x, (void)y, (void)z;                           \
    return pair_word(expression);                        \
  }
#define BRAIN_PAIR(name, expression)                                              \
  FLOAT_PROGRAM(name) {                                                           \
    const __nv_bfloat162 x = brain_pair(a), y = brain_pair(b), z = brain_pair(c); \
    (void)x, (void)y, (void)z;                                                    \
    return pair_word(expression);                                                 \
  }
HALF(half_arithmetic, __hadd(__hmul(x, y), __hsub(z, x)))
HALF(half_fused, __hfma(x, y, z))
HALF(half_saturated, __hadd(__hfma_sat(x, y, z), __hadd_sat(x, y)))
HALF(half_relu, __hfma_relu(x, y, z))
HALF(half_extremes, __hmin(__hmax(x, y), __hmin_nan(y, z)))
HALF(half_signs, __habs(__hneg(x)))
HALF(half_division, __hdiv(x, y))
HALF(half_root, hsqrt(x))
RUN_HALF(half_reciprocals, __hadd(hrcp(x), hrsqrt(y)))
HALF(half_exponential, hexp(x))
HALF(half_exponential2, hexp2(x))
HALF(half_exponential10, hexp10(x))
HALF(half_logarithm, hlog(x))
HALF(half_logarithm2, hlog2(x))
HALF(half_logarithm10, hlog10(x))
HALF(half_sine, hsin(x))
HALF(half_cosine, hcos(x))
HALF(half_tanh, htanh(x))
RUN_HALF(half_tanh_approximate, htanh_approx(x))
HALF(half_floor, hfloor(x))
HALF(half_ceil, hceil(x))
HALF(half_trunc, htrunc(x))
HALF(half_rint, hrint(x))
HALF(half_compare, __heq(x, y) ? __hlt(y, z) ? x : y : __hgtu(x, z) || __hisnan(z) || __hneu(x, y) ? z : x)
HALF(half_from_integers, __hadd(__int2half_rn(s32(a)), __hadd(__ushort2half_rz(u16(b)), __ull2half_rd(c))))
HALF(half_to_integers, __int2half_rn(__half2int_rz(x) + s32(__half2ushort_rn(y)) + s32(__half2ll_ru(z))))
HALF(half_from_float, __hadd(__float2half_rz(f32(a)), __hadd(__float2half_ru(f32(b)), __double2half(f64(c)))))
HALF(half_through_float, __float2half_rn(__half2float(x) * __half2float(y)))
PAIR(half2_arithmetic, __hadd2(__hmul2(x, y), __hsub2(z, x)))
PAIR(half2_fused, __hfma2(x, y, z))
PAIR(half2_relu, __hfma2_relu(x, y, z))
PAIR(half2_saturated, __hmul2_sat(__hsub2_sat(x, y), z))
PAIR(half2_division, __h2div(x, y))
PAIR(half2_extremes, __hmax2(__hmin2(x, y), __hmax2_nan(y, z)))
PAIR(half2_compare, __hadd2(__heq2(x, y), __hgt2(y, z)))
PAIR(half2_compare_unordered, __hadd2(__hneu2(x, y), __hleu2(y, z)))
PAIR(half2_masks, __hbeq2(x, y) ? __hmul2(x, y) : __halves2half2(__low2half(x), __high2half(z)))
PAIR(half2_compare_mask, pair(__hlt2_mask(x, y) ^ __hge2_mask(y, z)))
PAIR(half2_exponential, h2exp2(x))
PAIR(half2_root, h2sqrt(x))
PAIR(half2_from_floats, __floats2half2_rn(f32(a), f32(b)))
PAIR(half2_negated, __habs2(__hneg2(x)))
BRAIN(brain_arithmetic, __hadd(__hmul(x, y), __hsub(z, x)))
BRAIN(brain_fused, __hfma(x, y, z))
BRAIN(brain_saturated, __hadd(__hfma_sat(x, y, z), __hadd_sat(x, y)))
BRAIN(brain_relu, __hfma_relu(x, y, z))
BRAIN(brain_extremes, __hmin(__hmax(x, y), __hmin_nan(y, z)))
BRAIN(brain_signs, __habs(__hneg(x)))
BRAIN(brain_division, __hdiv(x, y))
BRAIN(brain_root, hsqrt(x))
RUN_BRAIN(brain_reciprocals, __hadd(hrcp(x), hrsqrt(y)))
BRAIN(brain_exponential, hexp(x))
BRAIN(brain_exponential2, hexp2(x))
BRAIN(brain_logarithm, hlog(x))
BRAIN(brain_sine, hsin(x))
BRAIN(brain_tanh, htanh(x))
BRAIN(brain_floor, hfloor(x))
BRAIN(brain_rint, hrint(x))
BRAIN(brain_compare, __heq(x, y) ? __hlt(y, z) ? x : y : __hgtu(x, z) || __hisnan(z) ? z : x)
BRAIN(brain_from_integers,
      __hadd(__int2bfloat16_rn(s32(a)), __hadd(__ushort2bfloat16_rz(u16(b)), __ull2bfloat16_rd(c))))
BRAIN(brain_to_integers,
      __int2bfloat16_rn(__bfloat162int_rz(x) + s32(__bfloat162ushort_rn(y)) + s32(__bfloat162ll_ru(z))))
BRAIN(brain_from_float,
      __hadd(__float2bfloat16_rz(f32(a)), __hadd(__float2bfloat16_ru(f32(b)), __double2bfloat16(f64(c)))))
BRAIN_PAIR(brain2_arithmetic, __hadd2(__hmul2(x, y), __hsub2(z, x)))
BRAIN_PAIR(brain2_fused, __hfma2(x, y, z))
BRAIN_PAIR(brain2_relu, __hfma2_relu(x, y, z))
BRAIN_PAIR(brain2_extremes, __hmax2(__hmin2(x, y), __hmax2_nan(y, z)))
BRAIN_PAIR(brain2_compare, __hadd2(__heq2(x, y), __hgt2(y, z)))
BRAIN_PAIR(brain2_compare_mask, brain_pair(__hlt2_mask(x, y) ^ __hge2_mask(y, z)))
BRAIN_PAIR(brain2_exponential, h2exp2(x))
BRAIN_PAIR(brain2_from_floats, __floats2bfloat162_rn(f32(a), f32(b)))
