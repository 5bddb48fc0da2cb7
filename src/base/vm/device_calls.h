// What kernels ask of the system by calls: printf, and memory of the device's heap.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace assay::vm {

/// Of one run of a program; its blocks may run on several threads.
struct DeviceCalls {
  static constexpr size_t most_lines = 200;                  ///< of printf; what follows is counted
  static constexpr uint64_t heap_bytes = uint64_t{8} << 20;  ///< as CUDA's default (cudaLimitMallocHeapSize)

  std::mutex mutex;
  std::vector<std::string> printed;  ///< "block (0,0,0), thread (3,0,0): text"
  uint64_t not_printed = 0;
  uint64_t heap = 0;                     ///< address; 0: no entry of the program calls malloc
  std::map<uint64_t, uint64_t> objects;  ///< offset in the heap -> bytes

  /// Address of so many bytes, aligned to 16; 0 where the heap is full.
  uint64_t allocate(uint64_t bytes);
  /// False: no object begins there.
  bool release(uint64_t address);
};

}  // namespace assay::vm
