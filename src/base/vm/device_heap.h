// The heap that kernels take objects from by malloc: between the launches of one process it stays.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace assay::vm {

struct DeviceHeap {
  static constexpr uint64_t size = uint64_t{8} << 20;  ///< as CUDA's default (cudaLimitMallocHeapSize)

  std::vector<std::byte> bytes;
  std::vector<uint8_t> written;  ///< by byte: a kernel has stored there
  /// Offset -> bytes asked for. Of what was freed, as long as nothing else has been put there.
  std::map<uint64_t, uint64_t> objects, freed;
  uint64_t next = 0;  ///< behind the last object: what was freed is given again when there is no more
};

/// Programs that this thread runs while one lives begin with the heap that it holds, each with the same; of
/// the first that has a heap it keeps what that leaves.
class HeapOfProcess {
 public:
  explicit HeapOfProcess(std::shared_ptr<const DeviceHeap> before);
  ~HeapOfProcess();
  HeapOfProcess(const HeapOfProcess&) = delete;
  HeapOfProcess& operator=(const HeapOfProcess&) = delete;

  /// Null where there is none.
  static HeapOfProcess* current();
  const DeviceHeap* before() const { return before_.get(); }
  void leave(DeviceHeap&&);
  /// What the next launch begins with.
  std::shared_ptr<const DeviceHeap> after() const { return after_ ? after_ : before_; }

 private:
  std::shared_ptr<const DeviceHeap> before_, after_;
  HeapOfProcess* outer_;
};

}  // namespace assay::vm
