// What programs ask of their device: the runtime's functions for that, attributes and properties.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "src/standin/device.h"
#include "src/standin/device_attributes.h"
#include "src/standin/driver_entry.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the C functions stand outside it
using assay::binding::Gpu;

namespace assay::standin {
namespace {

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
  const Gpu& gpu = Device::get().gpu();
  char* const bytes = static_cast<char*>(to);
  std::memset(bytes, 0, at.all);
  std::snprintf(bytes, 256, "%s (assay's machine)", gpu.name);
  const auto put = [&](size_t offset, auto value) { std::memcpy(bytes + offset, &value, sizeof value); };
  put(288, size_t(gpu.memory_bytes)), put(296, size_t{49152}), put(304, 65536), put(308, 32),
      put(312, size_t{0x7fffffff});
  put(320, 1024), put(324, 1024), put(328, 1024), put(332, 64), put(336, 0x7fffffff), put(340, 65535);
  put(344, 65535), put(352, size_t{65536}), put(360, gpu.capability() / 10), put(364, gpu.capability() % 10);
  put(at.multiprocessors, gpu.multiprocessors), put(at.concurrent, 1), put(at.unified, 1),
      put(at.bus, gpu.memory_bus_bits);
  put(at.l2, gpu.l2_bytes), put(at.threads, gpu.threads_per_multiprocessor),
      put(at.shared, size_t(gpu.shared_per_multiprocessor)), put(at.registers, 65536);
  put(at.managed, 1), put(at.cooperative, 1), put(at.optin, size_t(gpu.shared_per_block_optin));
  put(at.blocks, gpu.blocks_per_multiprocessor), put(at.reserved, size_t{1024});
  return kSuccess;
}

}  // namespace
}  // namespace assay::standin

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
  Device::get().reset_heap();
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
  const std::optional<int> known = device_attribute(number);
  *value = known.value_or(0);
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
