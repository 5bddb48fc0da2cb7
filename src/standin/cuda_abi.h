// What programs compiled for the CUDA runtime pass by memory, as its headers lay it out (CUDA Runtime API,
// "Data types used by CUDA Runtime"; offsets as of 12.9 and 13.0). The build needs no header of the toolkit.
#pragma once
#include <cstddef>
#include <cstdint>

namespace assay::standin {

enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInvalidConfiguration = 9,
  kInvalidSymbol = 13,
  kInvalidDevicePointer = 17,
  kInvalidDeviceFunction = 98,
  kInvalidDevice = 101,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kAssert = 710,
  kLaunchFailure = 719,
  kNotSupported = 801
};

struct Dim3 {
  uint32_t x, y, z;
};

struct LaunchAttribute {
  int id;
  int pad;
  union {
    Dim3 cluster;
    int cooperative;
    char bytes[64];
  };
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, bytes) == 8);
enum : int { kAttributeCooperative = 2, kAttributeCluster = 4 };

struct LaunchConfig {
  Dim3 grid, block;
  size_t shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  uint32_t attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, attributes) == 40);
/// Of the driver's CUlaunchConfig, which has four bytes of them, and four that nobody writes.
inline uint32_t driver_shared_bytes(const LaunchConfig& config) {
  return static_cast<uint32_t>(config.shared_bytes);
}

/// What __cudaRegisterFatBinary is given (fatbinary_section.h).
struct FatBinaryWrapper {
  int32_t magic, version;
  const void* data;
  const void* file;
};
inline constexpr int32_t kWrapperMagic = 0x466243b1;
struct FatBinaryHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t body_bytes;
};
inline constexpr uint32_t kFatBinaryMagic = 0xba55ed50;
inline constexpr uint32_t kElfMagic = 0x464c457f;

struct FunctionAttributes {
  size_t shared_bytes, constant_bytes, local_bytes;
  int most_threads, registers, ptx_version, binary_version, cache_mode, most_dynamic_shared_bytes;
  int rest[22];
};
static_assert(sizeof(FunctionAttributes) == 136 || sizeof(FunctionAttributes) == 144);

struct PointerAttributes {  ///< the part that all versions have
  int type, device;
  void *on_device, *on_host;
};
static_assert(sizeof(PointerAttributes) == 24);

}  // namespace assay::standin
