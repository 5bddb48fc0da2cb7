// Tables of a program of which a launch leaves rows unread.
#pragma once
#include <optional>
#include <string>

#include "src/base/vm/store_search.h"

namespace assay::vm {

struct UnreadTable {
  PlacedInstruction load;  ///< the first before the guard, of its launch, block and thread
  std::string table;
};

/// A constant of the program (its chunk tables) that the guard's launch reads before the guard, and of which
/// no thread reads some rows: no block does what they are for, so the row by which one was turned away may be
/// another one's. None where every table that is read is read whole.
std::optional<UnreadTable> find_unread_table(const Program&, const TensorMap& inputs, const MachineOptions&,
                                             const PlacedInstruction& guard);

}  // namespace assay::vm
