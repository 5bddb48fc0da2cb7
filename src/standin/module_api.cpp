// Modules that a program loads itself, and what it does with them: the driver's functions ("CUDA Driver API",
// "Module Management", "Execution Control", "Memory Management"), for the one context that there is.
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <string>

#include "src/standin/device.h"
#include "src/standin/profiling.h"

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

int load(DriverCall call, const char* function, LoadedCode** module, const void* image) {
  const LoadCall given{reinterpret_cast<void**>(module), image};
  Told told(call, function, &given);
  *module = Device::get().load_image(image);
  if (is_loaded(*module)) return told.ended(kSuccess);
  Device::get().say("a module cannot be loaded: " + (*module)->refused);
  return told.ended(kInvalidImage);
}

int launch(const KernelHandle& function, LaunchRequest request, void** arguments, void** extra) {
  if (arguments && extra) return kInvalidValue;
  for (void** at = extra; at && *at != kPackedEnd; at += 2) {
    if (*at == kPackedPointer)
      request.packed = at[1];
    else if (*at == kPackedSize)
      request.packed_bytes = *static_cast<const size_t*>(at[1]);
    else
      return kInvalidValue;
  }
  return Device::get().launch(function, request, arguments);
}

}  // namespace

// ---- modules ----

ASSAY_CUDA int cuModuleLoadData(LoadedCode** module, const void* image) {
  return load(kModuleLoadData, "cuModuleLoadData", module, image);
}
ASSAY_CUDA int cuModuleLoadDataEx(LoadedCode** module, const void* image, unsigned, int*, void**) {
  return load(kModuleLoadDataEx, "cuModuleLoadDataEx", module, image);
}
ASSAY_CUDA int cuModuleLoadFatBinary(LoadedCode** module, const void* image) {
  return load(kModuleLoadFatBinary, "cuModuleLoadFatBinary", module, image);
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
  const FunctionCall given{reinterpret_cast<void**>(function), module, name};
  Told told(kModuleGetFunction, "cuModuleGetFunction", &given);
  if (!is_loaded(module)) return told.ended(kInvalidValue);
  functions.push_back({module, name});
  if (!Device::get().entry_of(functions.back()).is_object())
    return functions.pop_back(), told.ended(kNotFound);
  return *function = &functions.back(), told.ended(kSuccess);
}
ASSAY_CUDA int cuFuncGetParamInfo(const KernelHandle* function, size_t index, size_t* offset, size_t* bytes) {
  if (!function) return kInvalidValue;
  const nlohmann::json entry = Device::get().entry_of(*function);
  if (!entry.is_object() || index >= entry.at("parameters").size()) return kInvalidValue;
  const nlohmann::json& slot = entry.at("parameters").at(index);
  if (offset) *offset = slot.at("offset");
  if (bytes) *bytes = slot.at("bytes");
  return kSuccess;
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
ASSAY_CUDA int cuLaunchKernel(KernelHandle* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                              void* stream, void** arguments, void** extra) {
  if (!function) return kInvalidValue;
  const LaunchCall given{
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, arguments,
      extra};
  Told told(kLaunchKernel, "cuLaunchKernel", &given, function->entry.c_str());
  const LaunchRequest request{
      .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .shared_bytes = shared_bytes};
  return told.ended(launch(*function, request, arguments, extra));
}
ASSAY_CUDA int cuLaunchKernelEx(const LaunchConfig* config, KernelHandle* function, void** arguments,
                                void** extra) {
  if (!function || !config) return kInvalidValue;
  const LaunchExCall given{config, function, arguments, extra};
  Told told(kLaunchKernelEx, "cuLaunchKernelEx", &given, function->entry.c_str());
  LaunchRequest request{
      .grid = config->grid, .block = config->block, .shared_bytes = driver_shared_bytes(*config)};
  for (uint32_t i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kAttributeCluster) request.cluster = attribute.cluster;
    if (attribute.id == kAttributeCooperative) request.cooperative = attribute.cooperative != 0;
  }
  return told.ended(launch(*function, request, arguments, extra));
}
ASSAY_CUDA int cuFuncSetAttribute(KernelHandle*, int, int) {
  return kSuccess;
}

// ---- the context and memory ----

ASSAY_CUDA int cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t address) {
  uint64_t begin = 0;
  const Device::Allocation* const of = Device::get().find(reinterpret_cast<void*>(address), &begin);
  if (!of) return kNotFound;
  if (base) *base = begin;
  if (bytes) *bytes = of->bytes;
  return kSuccess;
}
ASSAY_CUDA int cuStreamIsCapturing(void*, int* captures) {
  return *captures = 0, kSuccess;
}
ASSAY_CUDA int cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void*) {
  return Device::get().copy(to, from, bytes);
}

ASSAY_CUDA int cuDevicePrimaryCtxRetain(void** context, int) {
  return *context = &functions, kSuccess;
}
ASSAY_CUDA int cuDevicePrimaryCtxRelease_v2(int) {
  return kSuccess;
}
ASSAY_CUDA int cuCtxCreate_v2(void** context, unsigned, int) {
  return *context = &functions, kSuccess;
}
ASSAY_CUDA int cuCtxGetDevice(int* device) {
  return *device = 0, kSuccess;
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
ASSAY_CUDA int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  return Device::get().register_memory(memory, bytes);
}
ASSAY_CUDA int cuMemHostUnregister(void* memory) {
  return Device::get().unregister_memory(memory);
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
