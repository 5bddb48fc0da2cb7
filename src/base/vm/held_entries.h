// Decoded entries that are kept for later runs: how much memory they take.
#pragma once
#include <cstdint>

#include "src/base/vm/code.h"

namespace assay::vm {

/// Of the entry, its module as parsed, and what the allocator adds: about so many.
uint64_t held_bytes(const Code&);
/// Of all that are kept now, and what they may be at most from the next one on (one is kept however large it
/// is); returns what it was. A gigabyte, unless somebody says otherwise.
uint64_t bytes_held();
uint64_t hold_at_most(uint64_t bytes);

}  // namespace assay::vm
