// The machine's global address space: named allocations with wide guard gaps, so that an address out of
// bounds never meets another tensor and can be described by the tensor it left.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/tensor/tensor.h"
#include "src/base/tensor/tensor_layout.h"
#include "src/base/vm/paged_bytes.h"

namespace assay::vm {

/// Windows of the generic address space. Those below allocation_base and those of shared and local memory are
/// where no memory of a process lies, whose addresses live storages keep.
inline constexpr uint64_t heap_base = 0x0600'0000'0000;       ///< the device's heap, in every launch
inline constexpr uint64_t function_base = 0x0700'0000'0000;   ///< functions, 16 apart: no memory
inline constexpr uint64_t parameter_base = 0x0800'0000'0000;  ///< the entry's parameter block
inline constexpr uint64_t variable_base = 0x0900'0000'0000;   ///< module variables, allocation_gap apart
inline constexpr uint64_t allocation_base = 0x1000'0000'0000;
inline constexpr uint64_t allocation_gap = 0x10'0000'0000;  ///< 64 GiB: wider than any 32-bit offset
inline constexpr uint64_t shared_window = 0x8000'0000'0000;
inline constexpr uint64_t local_window = 0x8100'0000'0000;
inline constexpr uint64_t window_bytes = 0x100'0000'0000;

/// Whether memory at that base is a buffer or a live storage: no function, parameter or module variable.
inline bool is_buffer(uint64_t base) {
  return base - function_base >= allocation_base - function_base;
}

/// A buffer that lies in another one's bytes.
struct Part {
  std::string name;
  uint64_t offset = 0, bytes = 0;  ///< in the allocation
  const Tensor* tensor = nullptr;  ///< null for workspaces
};

struct DeviceCalls;

struct Allocation {
  std::string name;
  uint64_t base = 0;
  uint64_t bytes = 0;
  std::byte* data = nullptr;             ///< null: in `pages`
  std::shared_ptr<PagedBytes> pages;     ///< of what is too large to be held
  const Tensor* tensor = nullptr;        ///< names and axes; null for workspaces, variables and parameters
  const TensorLayout* layout = nullptr;  ///< of a tensor that is a view; null: row by row
  std::vector<Part> parts;
  DeviceCalls* heap = nullptr;  ///< of the device's heap: which bytes are an object's

  /// Accesses go straight to `data`.
  bool is_plain() const { return !pages && !heap; }
  /// The tensor's element that this byte belongs to; -1 in a gap of a view.
  int64_t element_at(uint64_t offset) const;
};

/// A buffer's bytes.
struct Place {
  const Allocation* allocation = nullptr;
  uint64_t offset = 0, bytes = 0;  ///< in the allocation
  const Tensor* tensor = nullptr;
  uint64_t address() const { return allocation->base + offset; }
};

class Memory {
 public:
  /// Places `bytes` bytes at the next base; returns it. `data` stays the caller's.
  uint64_t add(std::string name, std::byte* data, uint64_t bytes, const Tensor* tensor,
               std::shared_ptr<PagedBytes> pages = nullptr, const TensorLayout* layout = nullptr);
  /// A buffer within the allocation at `base`, from `offset` on; returns its address.
  uint64_t add_part(uint64_t base, std::string name, uint64_t offset, uint64_t bytes, const Tensor* tensor);
  /// The same at a fixed base (parameters, module variables, live storages); replaces what was there.
  void place(uint64_t base, std::string name, std::byte* data, uint64_t bytes, const Tensor* tensor = nullptr,
             std::shared_ptr<PagedBytes> pages = nullptr, const TensorLayout* layout = nullptr);
  /// The device's heap, at heap_base.
  void place_heap(DeviceCalls&);
  void remove(uint64_t from, uint64_t to);  ///< those with a base in [from, to)

  /// Index of the allocation that holds [address, address + bytes), or -1.
  int find(uint64_t address, uint64_t bytes) const;
  /// The bytes of a buffer of the program; nothing for parameters and module variables.
  std::optional<Place> find(std::string_view name) const;
  const std::vector<Allocation>& allocations() const { return allocations_; }
  /// "o[b=0,t=17,h=0,v=3]", "states + 128", "q[b=0,t=3,h=0,k=0], 16 bytes past the end of q
  /// [B=1,T=3,H=1,K=4]",
  /// "a gap of q, 4 elements behind q[b=0,t=3,h=0,k=15]", "the null pointer of an absent argument + 8 bytes",
  /// "an address far from every tensor".
  std::string describe(uint64_t address) const;

 private:
  void insert(Allocation);
  std::vector<Allocation> allocations_;  ///< ascending base
  uint64_t next_ = allocation_base;
};

}  // namespace assay::vm
