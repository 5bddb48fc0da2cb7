// The CUDA runtime's functions, answered by the machine: names, parameters and results as "CUDA Runtime API"
// has them. Everything is done when a call returns; streams and events are names.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "src/standin/device.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the C functions stand outside it
using assay::binding::Gpu;

namespace assay::standin {
namespace {

struct CallConfiguration {
  Dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local std::vector<CallConfiguration> configurations;

Status launch(const void* kernel, const LaunchRequest& request, void** arguments) {
  Device& device = Device::get();
  const KernelHandle* const handle = device.kernel(kernel);
  return handle ? device.launch(*handle, request, arguments) : device.fail(kInvalidDeviceFunction);
}

Status copy(void* to, const void* from, size_t bytes) {
  return Device::get().copy(to, from, bytes);
}

Status copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                 size_t height) {
  for (size_t row = 0; row < height; ++row)
    if (const Status status = copy(static_cast<char*>(to) + row * to_pitch,
                                   static_cast<const char*>(from) + row * from_pitch, width))
      return status;
  return kSuccess;
}

Status fill(void* to, int value, size_t bytes) {
  return Device::get().fill(to, 0x01010101u * static_cast<uint8_t>(value), bytes);
}

constexpr std::pair<Status, std::pair<const char*, const char*>> kErrors[] = {
    {kSuccess, {"cudaSuccess", "no error"}},
    {kInvalidValue, {"cudaErrorInvalidValue", "invalid argument"}},
    {kMemoryAllocation, {"cudaErrorMemoryAllocation", "out of memory"}},
    {kInvalidConfiguration, {"cudaErrorInvalidConfiguration", "invalid configuration argument"}},
    {kInvalidSymbol, {"cudaErrorInvalidSymbol", "invalid device symbol"}},
    {kInvalidDevicePointer, {"cudaErrorInvalidDevicePointer", "invalid device pointer"}},
    {kInvalidDeviceFunction, {"cudaErrorInvalidDeviceFunction", "invalid device function"}},
    {kInvalidDevice, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
    {kIllegalAddress, {"cudaErrorIllegalAddress", "an illegal memory access was encountered"}},
    {kLaunchTimeout, {"cudaErrorLaunchTimeout", "the launch timed out and was terminated"}},
    {kAssert, {"cudaErrorAssert", "device-side assert triggered"}},
    {kLaunchFailure, {"cudaErrorLaunchFailure", "unspecified launch failure"}},
    {kNotSupported, {"cudaErrorNotSupported", "operation not supported"}}};

int blocks_that_fit(const KernelHandle* kernel, int threads, size_t dynamic_bytes) {
  const Gpu& gpu = Device::get().gpu();
  size_t shared = dynamic_bytes + 1024;
  if (kernel)
    if (const auto entry = Device::get().entry_of(*kernel); entry.is_object())
      shared += entry.at("shared_bytes").get<size_t>();
  const int of_threads = gpu.threads_per_multiprocessor / std::max(threads, 1);
  return std::min({gpu.blocks_per_multiprocessor, of_threads,
                   static_cast<int>(static_cast<size_t>(gpu.shared_per_multiprocessor) / shared)});
}

}  // namespace

}  // namespace assay::standin

// ---- what nvcc's host code calls ----

ASSAY_CUDA void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(Device::get().load(*static_cast<const FatBinaryWrapper*>(wrapper)));
}
ASSAY_CUDA void __cudaRegisterFatBinaryEnd(void**) {}
ASSAY_CUDA void __cudaUnregisterFatBinary(void**) {}
ASSAY_CUDA char __cudaInitModule(void**) {
  return 1;
}
ASSAY_CUDA void __cudaRegisterFunction(void** code, const char* host, char*, const char* name, int, void*,
                                       void*, void*, void*, int*) {
  Device::get().name_kernel(host, reinterpret_cast<LoadedCode*>(code), name);
}
ASSAY_CUDA void __cudaRegisterVar(void** code, char* host, char*, const char* name, int, size_t, int, int) {
  Device::get().name_variable(host, *reinterpret_cast<LoadedCode*>(code), name);
}
/// The host reads and writes such a variable by the pointer at `host`.
ASSAY_CUDA void __cudaRegisterManagedVar(void** code, void** host, char*, const char* name, int, size_t, int,
                                         int) {
  *host = Device::get().name_managed_variable(*reinterpret_cast<LoadedCode*>(code), name);
}
ASSAY_CUDA unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes, void* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
ASSAY_CUDA int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_bytes, void* stream) {
  if (configurations.empty()) return Device::get().fail(kInvalidConfiguration);
  const CallConfiguration& c = configurations.back();
  *grid = c.grid, *block = c.block, *shared_bytes = c.shared_bytes;
  std::memcpy(stream, &c.stream, sizeof c.stream);
  configurations.pop_back();
  return kSuccess;
}
ASSAY_CUDA int __cudaGetKernel(const void** kernel, const void* host) {
  *kernel = host;
  return Device::get().kernel(host) ? kSuccess : Device::get().fail(kInvalidDeviceFunction);
}
ASSAY_CUDA int __cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                  size_t shared_bytes, void*) {
  return launch(kernel, {.grid = grid, .block = block, .shared_bytes = shared_bytes}, arguments);
}
ASSAY_CUDA int __cudaLaunchKernel_ptsz(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                       size_t shared_bytes, void* stream) {
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

// ---- launches ----

ASSAY_CUDA int cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                size_t shared_bytes, void*) {
  return launch(kernel, {.grid = grid, .block = block, .shared_bytes = shared_bytes}, arguments);
}
ASSAY_CUDA int cudaLaunchCooperativeKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                           size_t shared_bytes, void*) {
  return launch(kernel, {.grid = grid, .block = block, .shared_bytes = shared_bytes, .cooperative = true},
                arguments);
}
ASSAY_CUDA int cudaLaunchKernelExC(const LaunchConfig* config, const void* kernel, void** arguments) {
  LaunchRequest request{.grid = config->grid, .block = config->block, .shared_bytes = config->shared_bytes};
  for (uint32_t i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& a = config->attributes[i];
    if (a.id == kAttributeCluster) request.cluster = a.cluster;
    if (a.id == kAttributeCooperative) request.cooperative = a.cooperative != 0;
  }
  return launch(kernel, request, arguments);
}
ASSAY_CUDA int cudaFuncSetAttribute(const void*, int, int) {
  return kSuccess;
}
ASSAY_CUDA int cudaFuncSetCacheConfig(const void*, int) {
  return kSuccess;
}
ASSAY_CUDA int cudaFuncGetAttributes(FunctionAttributes* to, const void* function) {
  Device& device = Device::get();
  const KernelHandle* const handle = device.kernel(function);
  const auto entry = handle ? device.entry_of(*handle) : nlohmann::json();
  if (!entry.is_object()) return device.fail(kInvalidDeviceFunction);
  std::memset(to, 0, 64);
  to->shared_bytes = entry.at("shared_bytes").get<size_t>();
  to->most_threads = entry.at("max_threads").get<int>() > 0 ? entry.at("max_threads").get<int>() : 1024;
  to->ptx_version = to->binary_version = device.gpu().capability();
  to->most_dynamic_shared_bytes = device.gpu().shared_per_block_optin;
  return kSuccess;
}
ASSAY_CUDA int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                      int threads, size_t shared_bytes,
                                                                      unsigned) {
  *blocks = blocks_that_fit(Device::get().kernel(kernel), threads, shared_bytes);
  return kSuccess;
}
ASSAY_CUDA int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                             size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared_bytes, 0);
}
ASSAY_CUDA int cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel, const LaunchConfig* config) {
  uint32_t blocks = 1;
  for (uint32_t i = 0; i < config->attribute_count; ++i)
    if (const LaunchAttribute& a = config->attributes[i]; a.id == kAttributeCluster)
      blocks = std::max(1u, a.cluster.x * a.cluster.y * a.cluster.z);
  const auto threads = static_cast<int>(config->block.x * config->block.y * config->block.z);
  *clusters = blocks_that_fit(Device::get().kernel(kernel), threads, config->shared_bytes) *
              Device::get().gpu().multiprocessors / static_cast<int>(blocks);
  return kSuccess;
}

// ---- memory ----

ASSAY_CUDA int cudaMalloc(void** to, size_t bytes) {
  return Device::get().allocate(bytes, Place::device, to);
}
ASSAY_CUDA int cudaMallocAsync(void** to, size_t bytes, void*) {
  return cudaMalloc(to, bytes);
}
ASSAY_CUDA int cudaMallocManaged(void** to, size_t bytes, unsigned) {
  return Device::get().allocate(bytes, Place::managed, to);
}
ASSAY_CUDA int cudaMallocHost(void** to, size_t bytes) {
  return Device::get().allocate(bytes, Place::pinned, to);
}
ASSAY_CUDA int cudaHostRegister(void* memory, size_t bytes, unsigned) {
  return Device::get().register_memory(memory, bytes);
}
ASSAY_CUDA int cudaHostUnregister(void* memory) {
  return Device::get().unregister_memory(memory);
}
ASSAY_CUDA int cudaHostAlloc(void** to, size_t bytes, unsigned) {
  return cudaMallocHost(to, bytes);
}
ASSAY_CUDA int cudaMallocPitch(void** to, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(to, *pitch * height);
}
ASSAY_CUDA int cudaFree(void* p) {
  return Device::get().free(p);
}
ASSAY_CUDA int cudaFreeAsync(void* p, void*) {
  return cudaFree(p);
}
ASSAY_CUDA int cudaFreeHost(void* p) {
  return cudaFree(p);
}
ASSAY_CUDA int cudaHostGetDevicePointer(void** to, void* from, unsigned) {
  *to = from;
  return kSuccess;
}
ASSAY_CUDA int cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  return copy(to, from, bytes);
}
ASSAY_CUDA int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, void*) {
  return copy(to, from, bytes);
}
ASSAY_CUDA int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                            size_t height, int) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height);
}
ASSAY_CUDA int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                 size_t height, int, void*) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height);
}
ASSAY_CUDA int cudaMemset(void* to, int value, size_t bytes) {
  return fill(to, value, bytes);
}
ASSAY_CUDA int cudaMemsetAsync(void* to, int value, size_t bytes, void*) {
  return fill(to, value, bytes);
}
ASSAY_CUDA int cudaMemGetInfo(size_t* free, size_t* all) {
  *free = *all = static_cast<size_t>(Device::get().gpu().memory_bytes);
  return kSuccess;
}
ASSAY_CUDA int cudaPointerGetAttributes(PointerAttributes* to, const void* p) {
  const Device::Allocation* const of = Device::get().find(p);
  const int type = !of ? 0 : of->place == Place::device ? 2 : of->place == Place::pinned ? 1 : 3;
  *to = {type, 0, of ? const_cast<void*>(p) : nullptr, type == 2 ? nullptr : const_cast<void*>(p)};
  return kSuccess;
}

// ---- variables of device code ----

ASSAY_CUDA int cudaGetSymbolAddress(void** to, const void* symbol) {
  const Device::Allocation* of = nullptr;
  if (const Status status = Device::get().find_variable(symbol, to, &of)) return status;
  return kSuccess;
}
ASSAY_CUDA int cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  void* at = nullptr;
  const Device::Allocation* of = nullptr;
  if (const Status status = Device::get().find_variable(symbol, &at, &of)) return status;
  *bytes = of->bytes;
  return kSuccess;
}
ASSAY_CUDA int cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, int) {
  void* at = nullptr;
  const int status = cudaGetSymbolAddress(&at, symbol);
  return status ? status : copy(static_cast<char*>(at) + offset, from, bytes);
}
ASSAY_CUDA int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                       int kind, void*) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
ASSAY_CUDA int cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, int) {
  void* at = nullptr;
  const int status = cudaGetSymbolAddress(&at, symbol);
  return status ? status : copy(to, static_cast<const char*>(at) + offset, bytes);
}
ASSAY_CUDA int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, int kind,
                                         void*) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}

// ---- errors ----

ASSAY_CUDA int cudaGetLastError() {
  return Device::get().last(true);
}
ASSAY_CUDA int cudaPeekAtLastError() {
  return Device::get().last(false);
}
ASSAY_CUDA const char* cudaGetErrorName(int status) {
  for (const auto& [known, text] : kErrors)
    if (known == status) return text.first;
  return "cudaErrorUnknown";
}
ASSAY_CUDA const char* cudaGetErrorString(int status) {
  for (const auto& [known, text] : kErrors)
    if (known == status) return text.second;
  return "unknown error";
}

// ---- streams and events ----

ASSAY_CUDA int cudaStreamCreate(void** stream) {
  return *stream = std::malloc(1), kSuccess;
}
ASSAY_CUDA int cudaStreamCreateWithFlags(void** stream, unsigned) {
  return cudaStreamCreate(stream);
}
ASSAY_CUDA int cudaStreamCreateWithPriority(void** stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
ASSAY_CUDA int cudaStreamDestroy(void* stream) {
  return std::free(stream), kSuccess;
}
ASSAY_CUDA int cudaStreamSynchronize(void*) {
  return Device::get().last(false);
}
ASSAY_CUDA int cudaStreamQuery(void*) {
  return Device::get().last(false);
}
ASSAY_CUDA int cudaStreamWaitEvent(void*, void*, unsigned) {
  return kSuccess;
}
ASSAY_CUDA int cudaStreamIsCapturing(void*, int* capturing) {
  return *capturing = 0, kSuccess;
}
ASSAY_CUDA int cudaProfilerStart() {
  return kSuccess;
}
ASSAY_CUDA int cudaProfilerStop() {
  return kSuccess;
}
