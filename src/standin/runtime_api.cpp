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
#include "src/standin/driver_entry.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the C functions stand outside it

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
  Device& device = Device::get();
  for (const void* side : {static_cast<const void*>(to), from})
    if (const Status status = device.check_range(side, bytes)) return status;
  std::memmove(to, from, bytes);
  return kSuccess;
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
  if (const Status status = Device::get().check_range(to, bytes)) return status;
  std::memset(to, value, bytes);
  return kSuccess;
}

/// cudaDeviceAttr, as far as programs ask; the driver's CUdevice_attribute has the same numbers.
int attribute(const Model& m, int number, bool& known) {
  known = true;
  switch (number) {
    case 1:
      return 1024;  // threads per block
    case 2:
    case 3:
      return 1024;  // block x, y
    case 4:
      return 64;  // block z
    case 5:
      return 0x7fffffff;  // grid x
    case 6:
    case 7:
      return 65535;  // grid y, z
    case 8:
      return 49152;  // shared memory per block
    case 9:
      return 65536;  // constant memory
    case 10:
      return 32;  // warp size
    case 12:
      return 65536;  // registers per block
    case 13:
      return 1980000;  // kHz
    case 16:
      return m.multiprocessors;
    case 31:
    case 41:
    case 115:
      return 1;  // concurrent kernels, unified addressing, pools
    case 36:
      return 2619000;  // memory, kHz
    case 37:
      return 5120;  // memory bus, bits
    case 38:
      return m.l2_bytes;
    case 39:
      return m.shared_per_multiprocessor > 102400 ? 2048 : 1536;  // threads per multiprocessor
    case 75:
      return m.major;
    case 76:
      return m.minor;
    case 81:
      return m.shared_per_multiprocessor;
    case 82:
      return 65536;  // registers per multiprocessor
    case 83:
    case 95:
      return 1;  // managed memory, cooperative launch
    case 97:
      return m.shared_per_block_optin;
    case 106:
      return m.blocks_per_multiprocessor;
    case 111:
      return 1024;  // shared memory reserved per block
    case 120:
      return m.major >= 9;  // cluster launch
    case 0:
    case 11:
    case 14:
    case 15:
    case 17:
    case 18:
    case 19:
    case 20:
    case 30:
    case 32:
    case 33:
    case 34:
    case 35:
    case 40:
    case 42:
    case 43:
    case 84:
    case 85:
    case 88:
    case 89:
    case 91:
    case 98:
    case 100:
    case 101:
    case 102:
    case 103:
    case 110:
    case 116:
    case 117:
    case 119:
    case 125:
    case 129:
    case 132:
      return 0;
    default:
      known = false;
      return 0;
  }
}

/// Offsets of cudaDeviceProp where 12 and 13 differ.
struct PropertyOffsets {
  size_t multiprocessors, concurrent, unified, bus, l2, threads, shared, registers, managed, cooperative,
      optin, blocks, reserved, all;
};
constexpr PropertyOffsets kProperties12 = {388, 576, 604, 612, 616, 624, 640,
                                           648, 652, 688, 696, 712, 720, 1032};
constexpr PropertyOffsets kProperties13 = {384, 560, 588, 592, 596, 604, 624,
                                           632, 636, 668, 672, 688, 696, 1008};

Status properties(void* to, const PropertyOffsets& at) {
  if (!to) return Device::get().fail(kInvalidValue);
  const Model& m = Device::get().model();
  char* const bytes = static_cast<char*>(to);
  std::memset(bytes, 0, at.all);
  std::snprintf(bytes, 256, "%s", m.name);
  const auto put = [&](size_t offset, auto value) { std::memcpy(bytes + offset, &value, sizeof value); };
  bool known = false;
  const auto of = [&](int number) { return attribute(m, number, known); };
  put(288, m.memory_bytes), put(296, size_t{49152}), put(304, 65536), put(308, 32),
      put(312, size_t{0x7fffffff});
  put(320, 1024), put(324, 1024), put(328, 1024), put(332, 64), put(336, 0x7fffffff), put(340, 65535);
  put(344, 65535), put(352, size_t{65536}), put(360, m.major), put(364, m.minor);
  put(at.multiprocessors, m.multiprocessors), put(at.concurrent, 1), put(at.unified, 1), put(at.bus, of(37));
  put(at.l2, m.l2_bytes), put(at.threads, of(39)), put(at.shared, size_t(of(81))), put(at.registers, of(82));
  put(at.managed, 1), put(at.cooperative, 1), put(at.optin, size_t(m.shared_per_block_optin));
  put(at.blocks, m.blocks_per_multiprocessor), put(at.reserved, size_t{1024});
  return kSuccess;
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
  const Model& m = Device::get().model();
  size_t shared = dynamic_bytes + 1024;
  if (kernel)
    if (const auto entry = Device::get().entry_of(*kernel); entry.is_object())
      shared += entry.at("shared_bytes").get<size_t>();
  bool known = false;
  const int of_threads = attribute(m, 39, known) / std::max(threads, 1);
  return std::min({m.blocks_per_multiprocessor, of_threads,
                   static_cast<int>(static_cast<size_t>(m.shared_per_multiprocessor) / shared)});
}

}  // namespace

int device_attribute(int number, bool& known) {
  return attribute(Device::get().model(), number, known);
}

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
ASSAY_CUDA void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
ASSAY_CUDA void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}
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
  to->ptx_version = to->binary_version = device.model().major * 10 + device.model().minor;
  to->most_dynamic_shared_bytes = device.model().shared_per_block_optin;
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
              Device::get().model().multiprocessors / static_cast<int>(blocks);
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
  *free = *all = Device::get().model().memory_bytes;
  return kSuccess;
}
ASSAY_CUDA int cudaPointerGetAttributes(PointerAttributes* to, const void* p) {
  const Device::Allocation* const of = Device::get().find(p);
  const int type = !of ? 0 : of->place == Place::device ? 2 : of->place == Place::pinned ? 1 : 3;
  *to = {type, 0, of ? const_cast<void*>(p) : nullptr, type == 2 ? nullptr : const_cast<void*>(p)};
  return kSuccess;
}
/// Variables of a module live as long as one launch: said, and refused, where a program sets or reads one.
#define ASSAY_NO_VARIABLES(what)                                                                          \
  Device::get().say(what ": variables of device code are not kept between launches, so this is refused"); \
  return Device::get().fail(kNotSupported)
ASSAY_CUDA int cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, int) {
  ASSAY_NO_VARIABLES("cudaMemcpyToSymbol");
}
ASSAY_CUDA int cudaMemcpyToSymbolAsync(const void*, const void*, size_t, size_t, int, void*) {
  ASSAY_NO_VARIABLES("cudaMemcpyToSymbolAsync");
}
ASSAY_CUDA int cudaMemcpyFromSymbol(void*, const void*, size_t, size_t, int) {
  ASSAY_NO_VARIABLES("cudaMemcpyFromSymbol");
}
ASSAY_CUDA int cudaGetSymbolAddress(void**, const void*) {
  ASSAY_NO_VARIABLES("cudaGetSymbolAddress");
}

// ---- devices ----

ASSAY_CUDA int cudaGetDeviceCount(int* count) {
  return *count = 1, kSuccess;
}
ASSAY_CUDA int cudaGetDevice(int* device) {
  return *device = 0, kSuccess;
}
ASSAY_CUDA int cudaSetDevice(int device) {
  return device == 0 ? kSuccess : Device::get().fail(kInvalidDevice);
}
ASSAY_CUDA int cudaSetDeviceFlags(unsigned) {
  return kSuccess;
}
ASSAY_CUDA int cudaInitDevice(int, unsigned, unsigned) {
  return kSuccess;
}
ASSAY_CUDA int cudaDeviceReset() {
  return kSuccess;
}
ASSAY_CUDA int cudaDeviceSynchronize() {
  return Device::get().last(false);
}
ASSAY_CUDA int cudaDeviceSetLimit(int, size_t) {
  return kSuccess;
}
ASSAY_CUDA int cudaDeviceSetCacheConfig(int) {
  return kSuccess;
}
ASSAY_CUDA int cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  return *least = *most = 0, kSuccess;
}
ASSAY_CUDA int cudaDeviceCanAccessPeer(int* can, int, int) {
  return *can = 0, kSuccess;
}
ASSAY_CUDA int cudaDeviceGetAttribute(int* value, int number, int) {
  bool known = false;
  *value = assay::standin::device_attribute(number, known);
  if (!known) Device::get().say(fmt::format("device attribute {} is not known; 0 is answered", number));
  return kSuccess;
}
ASSAY_CUDA int cudaGetDeviceProperties_v2(void* to, int) {
  return properties(to, kProperties12);
}
ASSAY_CUDA int cudaGetDeviceProperties(void* to, int) {
  return properties(to, kProperties13);
}
ASSAY_CUDA int cudaDriverGetVersion(int* version) {
  return *version = 13000, kSuccess;
}
ASSAY_CUDA int cudaRuntimeGetVersion(int* version) {
  return *version = 13000, kSuccess;
}
ASSAY_CUDA int cudaGetDriverEntryPointByVersion(const char* name, void** to, unsigned, unsigned long long,
                                                int* found) {
  *to = driver_function(name);
  if (found) *found = *to ? 0 : 1;  // cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound
  if (!*to) Device::get().say(fmt::format("the driver's {} is not there", name));
  return kSuccess;
}
ASSAY_CUDA int cudaGetDriverEntryPoint(const char* name, void** to, unsigned long long, int* found) {
  return cudaGetDriverEntryPointByVersion(name, to, 13000, 0, found);
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
ASSAY_CUDA int cudaEventCreate(void** event) {
  *event = new std::chrono::steady_clock::time_point{};
  return kSuccess;
}
ASSAY_CUDA int cudaEventCreateWithFlags(void** event, unsigned) {
  return cudaEventCreate(event);
}
ASSAY_CUDA int cudaEventDestroy(void* event) {
  delete static_cast<std::chrono::steady_clock::time_point*>(event);
  return kSuccess;
}
ASSAY_CUDA int cudaEventRecord(void* event, void*) {
  *static_cast<std::chrono::steady_clock::time_point*>(event) = std::chrono::steady_clock::now();
  return kSuccess;
}
ASSAY_CUDA int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
ASSAY_CUDA int cudaEventSynchronize(void*) {
  return Device::get().last(false);
}
ASSAY_CUDA int cudaEventQuery(void*) {
  return Device::get().last(false);
}
ASSAY_CUDA int cudaEventElapsedTime(float* milliseconds, void* from, void* to) {
  using Time = std::chrono::steady_clock::time_point;
  *milliseconds =
      std::chrono::duration<float, std::milli>(*static_cast<Time*>(to) - *static_cast<Time*>(from)).count();
  return kSuccess;
}
ASSAY_CUDA int cudaEventElapsedTime_v2(float* milliseconds, void* from, void* to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}
ASSAY_CUDA int cudaProfilerStart() {
  return kSuccess;
}
ASSAY_CUDA int cudaProfilerStop() {
  return kSuccess;
}
