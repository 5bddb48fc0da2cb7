// What the programs of the corpus are written in: each is one kernel for nvcc and one host function that
// gives the same words. A program's body sees its thread number t and 64-bit words a, b, c of that thread;
// where the body itself is no C++ of the host, the host's branch may read the inputs of other threads (`in`).
#pragma once
#include <cstdint>
#include <cstring>

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using s8 = signed char;
using s16 = short;
using s32 = int;
using s64 = long long;

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define BOTH __host__ __device__
#define ONCE __host__ __device__ __noinline__
#define LISTED_PROGRAM(name, float_, ulps, low, high)                                 \
  static __device__ u64 name##_of(u32 t, u64 a, u64 b, u64 c);                        \
  extern "C" __global__ void name(const u64* a, const u64* b, const u64* c, u64* d) { \
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;                              \
    d[t] = name##_of(t, a[t], b[t], c[t]);                                            \
  }                                                                                   \
  static __device__ u64 name##_of(u32 t, u64 a, u64 b, u64 c)
#else
#include "tests/ptx/corpus/host_half.h"
#include "tests/ptx/corpus/listed.h"
#define BOTH
#define ONCE __attribute__((noinline))
#define LISTED_PROGRAM(name, float_, ulps, low, high)                                             \
  static u64 name##_of(u32 t, u64 a, u64 b, u64 c);                                               \
  static const bool name##_is_listed = list_program({#name, float_, ulps, low, high, name##_of}); \
  static u64 name##_of([[maybe_unused]] u32 t, [[maybe_unused]] u64 a, [[maybe_unused]] u64 b,    \
                       [[maybe_unused]] u64 c)
#endif

/// A program whose words are the same however it is compiled.
#define PROGRAM(name) LISTED_PROGRAM(name, false, 0, 0, 0)
/// A program of exact floating-point operations: -use_fast_math changes its words.
#define FLOAT_PROGRAM(name) LISTED_PROGRAM(name, true, 0, 0, 0)
/// A program that is only run: its words are nobody's to predict.
#define RUN_PROGRAM(name) LISTED_PROGRAM(name, true, -1, 0, 0)

BOTH inline float f32(u64 a) {
  const u32 word = u32(a);
  float x;
  memcpy(&x, &word, 4);
  return x;
}
BOTH inline double f64(u64 a) {
  double x;
  memcpy(&x, &a, 8);
  return x;
}
/// The bits of a result; NaN has one pattern.
BOTH inline u64 word(float x) {
  u32 bits;
  memcpy(&bits, &x, 4);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits;
}
BOTH inline u64 word(double x) {
  u64 bits;
  memcpy(&bits, &x, 8);
  return (bits & ~(1ull << 63)) > (0x7ffull << 52) ? ~(1ull << 63) : bits;
}

/// A function of the CUDA math library on [low, high] and the largest difference from the correctly rounded
/// result, in ulps, that the CUDA Programming Guide states (5.5.7 and 5.5.8, tables 47 to 51 and 55). The
/// host computes in long double and rounds.
#ifdef __CUDACC__
#define MATH32(name, ulps, low, high, expression)     \
  LISTED_PROGRAM(name##_f32, true, ulps, low, high) { \
    const float x = f32(a), y = f32(b), z = f32(c);   \
    (void)y, (void)z;                                 \
    return word(expression);                          \
  }
#define MATH64(name, ulps, low, high, expression)     \
  LISTED_PROGRAM(name##_f64, true, ulps, low, high) { \
    const double x = f64(a), y = f64(b), z = f64(c);  \
    (void)y, (void)z;                                 \
    return word(expression);                          \
  }
#else
#define MATH_OF(name, Real, ulps, low, high, expression, read) \
  LISTED_PROGRAM(name, true, ulps, low, high) {                \
    const long double x = read(a), y = read(b), z = read(c);   \
    (void)y, (void)z;                                          \
    return word(static_cast<Real>(expression));                \
  }
#define MATH32(name, ulps, low, high, expression) MATH_OF(name##_f32, float, ulps, low, high, expression, f32)
#define MATH64(name, ulps, low, high, expression) \
  MATH_OF(name##_f64, double, ulps, low, high, expression, f64)
#endif
