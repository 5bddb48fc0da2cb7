// The part of the CUDA driver API that assay uses, opened at run time: no CUDA header or library is needed to
// build. Names, types and constants as in the CUDA Driver API Reference; the suffix _v2 is part of the
// exported symbol.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace assay {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;

enum : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
};

struct CUlaunchAttribute {
  int id;
  unsigned padding, value[16];
};
struct CUlaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned attribute_count;
};

// name, exported symbol, parameters
#define ASSAY_DRIVER_FUNCTIONS(X)                                                                           \
  X(cuInit, "cuInit", (unsigned flags))                                                                     \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int* version))                                               \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int* count))                                                     \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                           \
  X(cuDeviceGetName, "cuDeviceGetName", (char* name, int length, CUdevice device))                          \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, CUdevice device))             \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice device))                             \
  X(cuCtxCreate, "cuCtxCreate_v2", (CUcontext * context, unsigned flags, CUdevice device))                  \
  X(cuCtxDestroy, "cuCtxDestroy_v2", (CUcontext context))                                                   \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                               \
    (CUmodule * module, const void* image, unsigned count, int* options, void** values))                    \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char* name)) \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))              \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * pointer, size_t bytes))                                     \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr pointer))                                                       \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void* from, size_t bytes))                      \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void* to, CUdeviceptr from, size_t bytes))                            \
  X(cuMemsetD8, "cuMemsetD8_v2", (CUdeviceptr pointer, unsigned char value, size_t bytes))                  \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                       \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,              \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,         \
     void** extra))                                                                                         \
  X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                                      \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                                   \
  X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                       \
  X(cuEventQuery, "cuEventQuery", (CUevent event))                                                          \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float* milliseconds, CUevent start, CUevent end))            \
  X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char** text))                                  \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char** text))

/// The driver's functions, and the first GPU it lists.
struct Driver {
#define ASSAY_DRIVER_MEMBER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  ASSAY_DRIVER_FUNCTIONS(ASSAY_DRIVER_MEMBER)
#undef ASSAY_DRIVER_MEMBER
  // Null in drivers before CUDA 12.
  CUresult (*cuTensorMapEncodeTiled)(void* map, int element, unsigned rank, void* address,
                                     const uint64_t* sizes, const uint64_t* strides, const uint32_t* box,
                                     const uint32_t* steps, int interleave, int swizzle, int promotion,
                                     int outside) = nullptr;
  CUresult (*cuTensorMapEncodeIm2col)(void* map, int element, unsigned rank, void* address,
                                      const uint64_t* sizes, const uint64_t* strides, const int* lower,
                                      const int* upper, uint32_t channels, uint32_t pixels,
                                      const uint32_t* steps, int interleave, int swizzle, int promotion,
                                      int outside) = nullptr;
  CUresult (*cuLaunchKernelEx)(const CUlaunchConfig*, CUfunction, void** parameters, void** extra) = nullptr;
  CUdevice device = 0;
  int version = 0;  ///< of the driver API: 13000 for CUDA 13.0

  /// Opens and initialises the driver. Throws BadInput saying what is missing: the library, one of its
  /// functions, or a GPU.
  static Driver open();

  std::string device_name() const;  ///< "NVIDIA H200"
  std::string arch() const;         ///< "sm_90"
  size_t memory_bytes() const;
  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  std::string error_text(CUresult) const;
  /// Throws BadInput("<what>: <error text>") unless the call succeeded.
  void check(CUresult, const std::string& what) const;
};

}  // namespace assay
