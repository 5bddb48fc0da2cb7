// Modules that a program loads itself, and what it does with them: the driver's functions ("CUDA Driver API",
// "Module Management", "Execution Control", "Memory Management"), for the one context that there is.
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <string>

#include "src/standin/device.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the C functions stand outside it

namespace {

constexpr int kNotFound = 500, kFileNotFound = 301, kInvalidImage = 200;

/// CU_LAUNCH_PARAM_END and its kin, which name what follows them.
void* const kPackedEnd = nullptr;
void* const kPackedPointer = reinterpret_cast<void*>(1);
void* const kPackedSize = reinterpret_cast<void*>(2);

/// What programs hold as a CUfunction stays where it is.
std::list<KernelHandle> functions;

bool is_loaded(const LoadedCode* code) {
  return code && !code->modules.empty();
}

}  // namespace

// ---- modules ----

ASSAY_CUDA int cuModuleLoadData(LoadedCode** module, const void* image) {
  *module = Device::get().load_image(image);
  if (is_loaded(*module)) return kSuccess;
  Device::get().say("a module cannot be loaded: " + (*module)->refused);
  return kInvalidImage;
}
ASSAY_CUDA int cuModuleLoadDataEx(LoadedCode** module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}
ASSAY_CUDA int cuModuleLoadFatBinary(LoadedCode** module, const void* image) {
  return cuModuleLoadData(module, image);
}
ASSAY_CUDA int cuModuleLoad(LoadedCode** module, const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return kFileNotFound;
  const std::string image{std::istreambuf_iterator<char>(in), {}};
  return cuModuleLoadData(module, image.c_str());
}
ASSAY_CUDA int cuModuleUnload(LoadedCode*) {
  return kSuccess;
}
ASSAY_CUDA int cuModuleGetFunction(KernelHandle** function, LoadedCode* module, const char* name) {
  if (!is_loaded(module)) return kInvalidValue;
  functions.push_back({module, name});
  if (!Device::get().entry_of(functions.back()).is_object()) return functions.pop_back(), kNotFound;
  return *function = &functions.back(), kSuccess;
}
ASSAY_CUDA int cuModuleGetGlobal_v2(uint64_t* address, size_t* bytes, LoadedCode* module, const char* name) {
  if (!is_loaded(module)) return kInvalidValue;
  void* at = nullptr;
  const Device::Allocation* const of = Device::get().find_variable(*module, name, &at);
  if (!of) return kNotFound;
  if (address) *address = reinterpret_cast<uint64_t>(at);
  if (bytes) *bytes = of->bytes;
  return kSuccess;
}
ASSAY_CUDA int cuLaunchKernel(const KernelHandle* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                              void*, void** arguments, void** extra) {
  if (!function) return kInvalidValue;
  LaunchRequest request{
      .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .shared_bytes = shared_bytes};
  if (arguments && extra) return kInvalidValue;
  for (void** at = extra; at && *at != kPackedEnd; at += 2) {
    if (*at == kPackedPointer)
      request.packed = at[1];
    else if (*at == kPackedSize)
      request.packed_bytes = *static_cast<const size_t*>(at[1]);
    else
      return kInvalidValue;
  }
  return Device::get().launch(*function, request, arguments);
}
ASSAY_CUDA int cuFuncSetAttribute(KernelHandle*, int, int) {
  return kSuccess;
}

// ---- the context and memory ----

ASSAY_CUDA int cuDevicePrimaryCtxRetain(void** context, int) {
  return *context = &functions, kSuccess;
}
ASSAY_CUDA int cuDevicePrimaryCtxRelease_v2(int) {
  return kSuccess;
}
ASSAY_CUDA int cuCtxCreate_v2(void** context, unsigned, int) {
  return *context = &functions, kSuccess;
}
ASSAY_CUDA int cuCtxSetCurrent(void*) {
  return kSuccess;
}
ASSAY_CUDA int cuCtxDestroy_v2(void*) {
  return kSuccess;
}
ASSAY_CUDA int cuCtxSynchronize() {
  return Device::get().last(false);
}
ASSAY_CUDA int cuMemAlloc_v2(void** to, size_t bytes) {
  return bytes ? Device::get().allocate(bytes, Place::device, to) : kInvalidValue;
}
ASSAY_CUDA int cuMemFree_v2(void* address) {
  return Device::get().free(address);
}
ASSAY_CUDA int cuMemcpyHtoD_v2(void* to, const void* from, size_t bytes) {
  return Device::get().copy(to, from, bytes);
}
ASSAY_CUDA int cuMemcpyDtoH_v2(void* to, const void* from, size_t bytes) {
  return Device::get().copy(to, from, bytes);
}
ASSAY_CUDA int cuMemcpyDtoD_v2(void* to, const void* from, size_t bytes) {
  return Device::get().copy(to, from, bytes);
}
