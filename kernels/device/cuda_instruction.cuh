// What the kernels use of CUDA's own words. nvcc puts cuda_runtime.h before every source: 36,000 lines, most
// of them for the host, whose reading is a fifth of a module's compilation. kernels/compile_ptx.cpp leaves it
// out by its own guard and puts this before the source instead. Meanings are those of CUDA's headers
// (device_functions.h, math_functions.h, vector_functions.hpp, sm_20_intrinsics.hpp, sm_30_intrinsics.hpp),
// and so are the names that the compiler knows: the instructions are the same. A source that uses more is
// compiled with all of CUDA's header. As in instruction.cuh, a line in here counts as the line that calls it.
#pragma once
#include <device_launch_parameters.h>

extern "C" {
__device__ __device_builtin__ int __float_as_int(float);
__device__ __device_builtin__ float __int_as_float(int);
__device__ __device_builtin__ float __uint_as_float(unsigned int);
__device__ __device_builtin__ float __fmaf_rn(float, float, float);
__device__ __device_builtin__ float __frcp_rn(float);
__device__ __device_builtin__ float __fsqrt_rn(float);
__device__ __device_builtin__ float fabsf(float);
__device__ __device_builtin__ float fmaxf(float, float);
__device__ __device_builtin__ float copysignf(float, float);
__device__ __device_builtin__ int min(int, int);
__device__ __device_builtin__ int max(int, int);
__device__ __device_builtin__ long long llmin(long long, long long);
__device__ __device_builtin__ int __clz(int);
__device__ __device_builtin__ void __syncthreads();
__device__ __device_builtin__ void __nvvm_bar_warp_sync(unsigned int lanes);
__device__ __device_builtin__ unsigned int __nvvm_shfl_idx_sync(unsigned int, unsigned int, unsigned int,
                                                                unsigned int);
__device__ __device_builtin__ unsigned int __nvvm_shfl_bfly_sync(unsigned int, unsigned int, unsigned int,
                                                                 unsigned int);
__device__ __device_builtin__ unsigned long __nv_cvta_generic_to_shared_impl(const void*);
}

// Other types than those below are for CUDA's header, not for conversions.
template <class A, class B>
__device__ void min(A, B) = delete;
template <class A, class B>
__device__ void max(A, B) = delete;
template <class Value>
__device__ void __shfl_sync(unsigned int, Value, int, int = 32) = delete;
template <class Value>
__device__ void __shfl_xor_sync(unsigned int, Value, int, int = 32) = delete;

// In as many statements as in CUDA's headers: each has its place in the line table.
__device__ __forceinline__ long long min(long long a, long long b) {
  return llmin(a, b);
}
__device__ __forceinline__ float2 make_float2(float x, float y) {
  float2 made;
  made.x = x;
  made.y = y;
  return made;
}
__device__ __forceinline__ float4 make_float4(float x, float y, float z, float w) {
  float4 made;
  made.x = x;
  made.y = y;
  made.z = z;
  made.w = w;
  return made;
}
__device__ __forceinline__ uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) {
  uint4 made;
  made.x = x;
  made.y = y;
  made.z = z;
  made.w = w;
  return made;
}
__device__ __forceinline__ void __syncwarp(unsigned int lanes = 0xFFFFFFFF) {
  __nvvm_bar_warp_sync(lanes);
}
__device__ __forceinline__ unsigned long __cvta_generic_to_shared(const void* pointer) {
  return __nv_cvta_generic_to_shared_impl(pointer);
}
__device__ __forceinline__ int __shfl_sync(unsigned int lanes, int value, int lane) {
  int result;
  int bound;  // the last lane that is read
  bound = 0x1f;
  result = __nvvm_shfl_idx_sync(lanes, value, lane, bound);
  return result;
}
__device__ __forceinline__ unsigned int __shfl_sync(unsigned int lanes, unsigned int value, int lane) {
  return (unsigned int)__shfl_sync(lanes, (int)value, lane);
}
__device__ __forceinline__ float __shfl_sync(unsigned int lanes, float value, int lane) {
  int result;
  int bound;
  bound = 0x1f;
  result = __nvvm_shfl_idx_sync(lanes, __float_as_int(value), lane, bound);
  return __int_as_float(result);
}
__device__ __forceinline__ int __shfl_xor_sync(unsigned int lanes, int value, int other) {
  int result;
  int bound;
  bound = 0x1f;
  result = __nvvm_shfl_bfly_sync(lanes, value, other, bound);
  return result;
}
__device__ __forceinline__ unsigned int __shfl_xor_sync(unsigned int lanes, unsigned int value, int other) {
  return (unsigned int)__shfl_xor_sync(lanes, (int)value, other);
}
__device__ __forceinline__ float __shfl_xor_sync(unsigned int lanes, float value, int other) {
  int result;
  int bound;
  bound = 0x1f;
  result = __nvvm_shfl_bfly_sync(lanes, __float_as_int(value), other, bound);
  return __int_as_float(result);
}
