// Provenance of what stands in global memory: per 16-bit half, who made its non-finite value and what it
// depends on.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "src/base/tensor/tensor_layout.h"
#include "src/base/vm/cell_memory.h"
#include "src/base/vm/event_log.h"

namespace assay::vm {

struct ProvenanceCell {
  Tag tag = 0;
  Dependence dependence = kNothing;
};

class ProvenanceMemory {
 public:
  /// What an allocation holds before anything is stored there.
  struct Origin {
    Dependence untouched = kUnwritten;
    bool is_input = false;  ///< then a half depends on its element: leaf first_leaf + byte / element_bytes
    uint32_t first_leaf = 0, element_bytes = 1;
    std::optional<TensorLayout> layout;  ///< of an input that is a view; what its gaps hold nothing wrote
  };
  struct Stored {
    ProvenanceCell cell;
    int32_t writer = -1;  ///< site of the store; -1: none
  };
  using Cells = GlobalCells<CellArray<Stored>, Origin>;

  void add(const std::string& name, uint64_t base, uint64_t bytes, Origin origin) {
    cells_.add(name, base, bytes, 2, {}, std::move(origin));
  }
  /// Where a buffer's elements are: in an area of its own, or in one that several buffers share.
  struct Place {
    uint64_t address = 0;
    uint32_t element_bytes = 1;
  };
  void name(const std::string& buffer, Place place) { places_[buffer] = place; }
  struct Element {
    const Cells::Area* area = nullptr;  ///< null for what is no buffer
    uint64_t offset = 0;
    uint32_t bytes = 1;
  };
  Element find(const std::string& buffer, int64_t flat) const;

  /// Of parameters and module variables: depends on nothing.
  ProvenanceCell read(uint64_t address);
  void write(uint64_t address, ProvenanceCell, int32_t writer);
  static Stored at(const Cells::Area&, uint64_t offset);

 private:
  Cells cells_;
  size_t last_ = 0;
  std::map<std::string, Place> places_;
};

}  // namespace assay::vm
