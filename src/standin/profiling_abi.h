// What those who follow a program's calls of the driver are told by CUPTI, as its headers lay it out ("CUPTI
// Callback API"; numbers and offsets as of CUDA 12.0 to 13.0, which only add to them). The build needs no
// header of the toolkit.
#pragma once
#include <cstddef>
#include <cstdint>

#include "src/standin/cuda_abi.h"

namespace assay::standin {

enum : int { kProfilingSuccess = 0, kProfilingBusy = 39 };  // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
enum : uint32_t { kDriverDomain = 1 };                      // CUPTI_CB_DOMAIN_DRIVER_API
enum : int { kEnter = 0, kExit = 1 };

/// CUpti_driver_api_trace_cbid.
enum DriverCall : uint32_t {
  kModuleLoadData = 19,
  kModuleLoadDataEx = 20,
  kModuleLoadFatBinary = 21,
  kModuleGetFunction = 23,
  kLaunchKernel = 307,
  kLaunchKernelPtsz = 442,
  kLaunchCooperative = 477,
  kLaunchCooperativePtsz = 478,
  kLaunchKernelEx = 652,
  kLaunchKernelExPtsz = 653,
  kLibraryLoadData = 678,
  kLibraryGetKernel = 681,
  kLibraryGetModule = 682,
  kKernelGetFunction = 683,
};

struct ToldCall {  ///< CUpti_CallbackData
  int site;
  const char* function;
  const void* parameters;  ///< the struct below of that call
  void* status;
  const char* symbol;  ///< of a launch: the kernel's mangled name
  void* context;
  uint32_t context_number;
  uint64_t* kept;  ///< from the entry's telling to the exit's
  uint32_t number;
};
static_assert(offsetof(ToldCall, status) == 24 && offsetof(ToldCall, kept) == 56);

using Listener = void (*)(void* user, uint32_t domain, uint32_t call, const void* told);

struct LoadCall {  ///< cuModuleLoadData, cuModuleLoadDataEx, cuModuleLoadFatBinary, cuLibraryLoadData
  void** made;
  const void* image;
};
struct FunctionCall {  ///< cuModuleGetFunction, cuLibraryGetKernel
  void** made;
  void* of;
  const char* name;
};
struct HandleCall {  ///< cuKernelGetFunction, cuLibraryGetModule
  void** made;
  void* of;
};
struct LaunchCall {  ///< cuLaunchKernel; cuLaunchCooperativeKernel, without `extra`
  void* function;
  uint32_t grid[3], block[3], shared_bytes;
  void* stream;
  void** arguments;
  void** extra;
};
static_assert(offsetof(LaunchCall, stream) == 40);
struct LaunchExCall {
  const LaunchConfig* config;
  void* function;
  void** arguments;
  void** extra;
};

}  // namespace assay::standin
