// Shadow state beside registers and memory: per 16-bit half, who made its non-finite value and what it
// depends on.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/tensor/tensor_layout.h"
#include "src/base/vm/event_log.h"
#include "src/base/vm/memory.h"

namespace assay::vm {

struct ShadowCell {
  Tag tag = 0;
  Dependence dependence = kNothing;
};

/// Global memory: an area per allocation, its cells made at the first write.
class MemoryShadow {
 public:
  struct Area {
    std::string name;
    uint64_t base = 0, bytes = 0;
    Dependence untouched = kUnwritten;  ///< of a half that nothing wrote
    bool is_input = false;  ///< then a half depends on its element: leaf first_leaf + byte / element_bytes
    uint32_t first_leaf = 0, element_bytes = 1;
    std::optional<TensorLayout> layout;  ///< of an input that is a view; what its gaps hold nothing wrote
    std::vector<ShadowCell> cells;  ///< empty or bytes / 2, rounded up
    std::vector<int32_t> writers;   ///< site of the store that wrote a half, -1: none
  };

  void add(Area);
  /// The area that holds `address`; null for parameters and module variables.
  Area* find(uint64_t address);
  /// Where a buffer's elements are.
  struct Place {
    uint64_t address = 0;
    uint32_t element_bytes = 1;
  };
  void name(const std::string& buffer, Place place) { places_[buffer] = place; }
  /// The area of an element, and its address there; null for what is no buffer.
  std::pair<const Area*, uint64_t> find(const std::string& buffer, int64_t flat) const;

  static ShadowCell read(const Area*, uint64_t address);
  static void write(Area*, uint64_t address, ShadowCell, int32_t writer);

 private:
  std::vector<Area> areas_;  ///< ascending base
  size_t last_ = 0;
  std::map<std::string, Place> places_;
};

}  // namespace assay::vm
