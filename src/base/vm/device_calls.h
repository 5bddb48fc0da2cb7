// What kernels ask of the system by calls: printf, and memory of the device's heap.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/vm/device_heap.h"

namespace assay::vm {

/// Of one run of a program; its blocks may run on several threads.
struct DeviceCalls {
  static constexpr size_t most_lines = 200;  ///< of printf; what follows is counted

  std::mutex mutex;
  std::vector<std::string> printed;  ///< "block (0,0,0), thread (3,0,0): text"
  uint64_t not_printed = 0;
  DeviceHeap heap;  ///< without bytes: no entry of the program calls malloc, and no launch before did

  /// Address of so many bytes, aligned to 16; 0 where the heap is full. Between objects lie 16 bytes or more.
  uint64_t allocate(uint64_t bytes);
  /// False: no object begins there.
  bool release(uint64_t address);
  /// Whether all of [offset, offset + bytes) of the heap is one object's; what is written is noted.
  bool reaches_object(uint64_t offset, uint64_t bytes, bool writes);
  /// "4 bytes past the end of an object of 40 bytes of the device's heap"
  std::string describe(uint64_t offset);
};

}  // namespace assay::vm
