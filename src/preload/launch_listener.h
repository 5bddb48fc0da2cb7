// Launches of a process, whoever makes them, told to one who asks: python/assay/driver_launches.py.
//
// CUPTI tells of the driver's calls, in a process that is running already or from its first one on, where the
// driver's CUDA_INJECTION64_PATH names this library. Only loads of modules are told while nobody asks for
// launches.
#pragma once
#include <cstdint>

extern "C" {

/// A launch before it is made. What `image` points at stays until another module has the handle; it is null
/// where the module was loaded before this library was.
/// kind: 0: `image` is PTX text; 1: a fat binary; 2: there is no PTX; 3: nor is it looked for, in a library
/// of NVIDIA's or PyTorch's; 4: not known.
struct assay_told_launch {
  const char* name;  ///< of the entry
  const void* image;
  uint64_t image_bytes;
  int32_t kind;
  int32_t cooperative;
  uint32_t grid[3], block[3], cluster[3], shared_bytes;
  void* stream;
  uint32_t parameters;           ///< as the driver has them; 0 where it does not say
  const uint32_t* offsets;       ///< bytes
  const uint32_t* sizes;         ///< bytes
  const void* const* arguments;  ///< of each parameter, or null: `packed` holds them all
  const void* packed;
  uint64_t packed_bytes;
};

/// A number that `after` is called with once the launch is enqueued; 0: it is not called; all ones: launches
/// of this kernel need not be told, it has no PTX.
using assay_before_launch = uint64_t (*)(const assay_told_launch*);
using assay_after_launch = void (*)(uint64_t, int32_t status);

/// Tells of launches from now on. `cupti`: a file, tried where the process has no CUPTI loaded. Null, or why
/// it cannot.
const char* assay_tell_launches(assay_before_launch, assay_after_launch, const char* cupti);
/// No longer. A profiler finds CUPTI free then, unless the driver had loaded this library.
void assay_tell_no_launches();
/// Launches of kernels without PTX that were not told since the last call of assay_tell_launches.
uint64_t assay_launches_without_ptx();
/// While it is not 0, launches of the calling thread are neither told nor counted: the asker knows of them
/// already.
int32_t* assay_tell_otherwise();

/// What the driver calls.
int InitializeInjection();
}
