// The few functions of the CUDA driver that programs of the runtime call themselves ("CUDA Driver API").
#include <cstdio>
#include <cstring>
#include <string_view>

#include "src/base/program/tile_map_bytes.h"
#include "src/standin/device.h"
#include "src/standin/device_attributes.h"
#include "src/standin/driver_entry.h"
#include "src/standin/profiling.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the C functions stand outside it
using assay::TileMap;

namespace assay::standin {
namespace {

/// Puts a map together from what both encoders are given; the sizes and strides of `rank` axes.
TileMap map_of(int element, uint32_t rank, const uint64_t* sizes, const uint64_t* strides,
               const uint32_t* steps, int interleave, int swizzle, int promotion, int outside) {
  TileMap map;
  map.element = static_cast<TileMap::Element>(element);
  map.sizes.assign(sizes, sizes + rank), map.strides.assign(strides, strides + (rank - 1));
  map.steps.assign(steps, steps + rank);
  map.interleave = static_cast<TileMap::Interleave>(interleave);
  map.swizzle = static_cast<TileMap::Swizzle>(swizzle);
  map.promotion = static_cast<TileMap::Promotion>(promotion);
  map.outside = static_cast<TileMap::Outside>(outside);
  return map;
}

int encode(const TileMap& map, const void* address, void* to) {
  const auto at = reinterpret_cast<uint64_t>(address);
  if (const std::string fault = fault_of(map, at); !fault.empty()) {
    Device::get().say("a tensor map with " + fault);
    return kInvalidValue;
  }
  encode_tile_map(map, at, static_cast<std::byte*>(to));
  return kSuccess;
}

bool in_range(int element, uint32_t rank, int interleave, int swizzle, int promotion, int outside) {
  return element >= 0 && element <= 12 && rank >= 1 && rank <= 5 && interleave >= 0 && interleave <= 2 &&
         swizzle >= 0 && swizzle <= 3 && promotion >= 0 && promotion <= 3 && outside >= 0 && outside <= 1;
}

}  // namespace
}  // namespace assay::standin

ASSAY_CUDA int cuTensorMapEncodeTiled(void* to, int element, uint32_t rank, void* address,
                                      const uint64_t* sizes, const uint64_t* strides, const uint32_t* box,
                                      const uint32_t* steps, int interleave, int swizzle, int promotion,
                                      int outside) {
  if (!in_range(element, rank, interleave, swizzle, promotion, outside)) return kInvalidValue;
  TileMap map = map_of(element, rank, sizes, strides, steps, interleave, swizzle, promotion, outside);
  map.box.assign(box, box + rank);
  return encode(map, address, to);
}
ASSAY_CUDA int cuTensorMapEncodeIm2col(void* to, int element, uint32_t rank, void* address,
                                       const uint64_t* sizes, const uint64_t* strides, const int* lower,
                                       const int* upper, uint32_t channels, uint32_t pixels,
                                       const uint32_t* steps, int interleave, int swizzle, int promotion,
                                       int outside) {
  if (rank < 3 || !in_range(element, rank, interleave, swizzle, promotion, outside)) return kInvalidValue;
  TileMap map = map_of(element, rank, sizes, strides, steps, interleave, swizzle, promotion, outside);
  map.lower.assign(lower, lower + (rank - 2)), map.upper.assign(upper, upper + (rank - 2));
  map.channels = channels, map.pixels = pixels;
  return encode(map, address, to);
}
ASSAY_CUDA int cuInit(unsigned) {
  return load_injection(), kSuccess;
}
ASSAY_CUDA int cuDeviceGet(int* device, int) {
  return *device = 0, kSuccess;
}
ASSAY_CUDA int cuDeviceGetCount(int* count) {
  return *count = 1, kSuccess;
}
ASSAY_CUDA int cuDeviceGetName(char* name, int bytes, int) {
  return std::snprintf(name, static_cast<size_t>(bytes), "%s (assay's machine)", Device::get().gpu().name),
         kSuccess;
}
ASSAY_CUDA int cuDeviceGetAttribute(int* value, int number, int) {
  return *value = device_attribute(number).value_or(0), kSuccess;
}
ASSAY_CUDA int cuDeviceTotalMem_v2(size_t* bytes, int) {
  return *bytes = static_cast<size_t>(Device::get().gpu().memory_bytes), kSuccess;
}
ASSAY_CUDA int cuDriverGetVersion(int* version) {
  return *version = 13000, kSuccess;
}
ASSAY_CUDA int cuGetErrorString(int status, const char** text) {
  *text = status == kSuccess ? "no error" : status == kInvalidValue ? "invalid argument" : "unknown error";
  return kSuccess;
}
ASSAY_CUDA int cuGetErrorName(int status, const char** text) {
  *text = status == kSuccess        ? "CUDA_SUCCESS"
          : status == kInvalidValue ? "CUDA_ERROR_INVALID_VALUE"
                                    : "CUDA_ERROR_UNKNOWN";
  return kSuccess;
}
ASSAY_CUDA int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  return Device::get().fill(reinterpret_cast<void*>(to), value * 0x01010101u, bytes);
}
ASSAY_CUDA int cuMemsetD32Async(uint64_t to, uint32_t value, size_t count, void*) {
  return Device::get().fill(reinterpret_cast<void*>(to), value, 4 * count);
}
ASSAY_CUDA int cuMemsetD32_v2(uint64_t to, uint32_t value, size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}

namespace assay::standin {

void* driver_function(const char* name) {
  struct Function {
    const char* name;
    void* function;
  };
  static const Function kFunctions[] = {
      {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(&cuTensorMapEncodeTiled)},
      {"cuTensorMapEncodeIm2col", reinterpret_cast<void*>(&cuTensorMapEncodeIm2col)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(&cuDeviceGetAttribute)},
      {"cuGetErrorString", reinterpret_cast<void*>(&cuGetErrorString)},
      {"cuGetErrorName", reinterpret_cast<void*>(&cuGetErrorName)},
      {"cuMemsetD32Async", reinterpret_cast<void*>(&cuMemsetD32Async)},
      {"cuDriverGetVersion", reinterpret_cast<void*>(&cuDriverGetVersion)},
  };
  for (const Function& f : kFunctions)
    if (std::strcmp(f.name, name) == 0) return f.function;
  return nullptr;
}

}  // namespace assay::standin
