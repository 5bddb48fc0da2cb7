#include "src/standin/device_attributes.h"

#include <map>
#include <set>

#include "src/standin/device.h"

namespace assay::standin {
namespace {

using binding::Gpu;

/// cudaDeviceAttr, as far as programs ask; the driver's CUdevice_attribute has the same numbers.
std::map<int, int> attributes_of(const Gpu& gpu) {
  return {{1, 1024},                             // threads per block
          {2, 1024},                             // block x
          {3, 1024},                             // block y
          {4, 64},                               // block z
          {5, 0x7fffffff},                       // grid x
          {6, 65535},                            // grid y
          {7, 65535},                            // grid z
          {8, 49152},                            // shared memory per block
          {9, 65536},                            // constant memory
          {10, 32},                              // threads per warp
          {12, 65536},                           // registers per block
          {13, gpu.clock_khz},                   //
          {16, gpu.multiprocessors},             //
          {31, 1},                               // concurrent kernels
          {36, gpu.memory_clock_khz},            //
          {37, gpu.memory_bus_bits},             //
          {38, gpu.l2_bytes},                    //
          {39, gpu.threads_per_multiprocessor},  //
          {41, 1},                               // unified addressing
          {75, gpu.capability() / 10},           //
          {76, gpu.capability() % 10},           //
          {81, gpu.shared_per_multiprocessor},   //
          {82, 65536},                           // registers per multiprocessor
          {83, 1},                               // managed memory
          {95, 1},                               // cooperative launch
          {97, gpu.shared_per_block_optin},      //
          {106, gpu.blocks_per_multiprocessor},  //
          {111, 1024},                           // shared memory reserved per block
          {115, 1},                              // memory pools
          {120, gpu.capability() >= 90}};        // cluster launch
}

/// Those that are 0 here: what the machine lacks, or what says nothing about it.
const std::set<int> kZeros = {0,  11, 14, 15, 17, 18,  19,  20,  30,  32,  33,  34,  35,  40,  42,  43, 84,
                              85, 88, 89, 91, 98, 100, 101, 102, 103, 110, 116, 117, 119, 125, 129, 132};

}  // namespace

std::optional<int> device_attribute(int number) {
  static const std::map<int, int> attributes = attributes_of(Device::get().gpu());
  const auto found = attributes.find(number);
  if (found != attributes.end()) return found->second;
  return kZeros.contains(number) ? std::optional(0) : std::nullopt;
}

}  // namespace assay::standin
