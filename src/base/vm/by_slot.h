// What is known of each cell of a code's register file.
#pragma once
#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {

/// By the first 64 bytes of the cell, which is the smallest there is. no_slot has what none has.
template <class T>
class BySlot {
 public:
  explicit BySlot(const Code& code, T none = {}) : none_(none), known_(code.file_bytes / 64 + 1, none) {}
  T operator[](Slot slot) const { return slot == no_slot ? none_ : known_[slot / 64]; }
  void set(Slot slot, T value) {
    if (slot != no_slot) known_[slot / 64] = value;
  }

 private:
  T none_;
  std::vector<T> known_;
};

}  // namespace assay::vm
