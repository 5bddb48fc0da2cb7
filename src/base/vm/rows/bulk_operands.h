// Operands of bulk copies, by the places that they have among Op::slots, and what Op::immediate says of them.
#pragma once
#include <cstdint>

#include "src/base/ptx/form.h"

namespace assay::vm {

/// Slots of one op. What an instruction lacks is a constant 0.
enum BulkSlot : uint32_t {
  bulk_to,       ///< address, or the tensor map of what goes to a tensor
  bulk_from,     ///< address, or the tensor map of what comes from one
  bulk_barrier,  ///< address of the mbarrier
  bulk_size,
  bulk_mask,                            ///< of blocks of the cluster
  bulk_coordinates,                     ///< five
  bulk_offsets = bulk_coordinates + 5,  ///< three, of im2col
  bulk_slots = bulk_offsets + 3
};

/// Op::immediate.
struct BulkForm {
  bool to_wide = true, from_wide = true, barrier_wide = true;
  bool to_shared = false, from_shared = false;
  bool at_barrier = false;  ///< completes there; else of a bulk group
  bool multicast = false;
  bool im2col = false;
  uint8_t axes = 0;  ///< of a tensor; 0: plain bytes
  ptx::Combine combine = ptx::Combine::none;
  int32_t barrier_offset = 0;

  uint64_t bits() const {
    const uint64_t flags = uint64_t{to_wide} | uint64_t{from_wide} << 1 | uint64_t{barrier_wide} << 2 |
                           uint64_t{to_shared} << 3 | uint64_t{from_shared} << 4 | uint64_t{at_barrier} << 5 |
                           uint64_t{multicast} << 6 | uint64_t{im2col} << 7;
    return flags | uint64_t{axes} << 8 | static_cast<uint64_t>(combine) << 16 |
           static_cast<uint64_t>(static_cast<uint32_t>(barrier_offset)) << 32;
  }
  static BulkForm of(uint64_t bits) {
    const auto flag = [&](int bit) { return (bits >> bit & 1) != 0; };
    return {flag(0),
            flag(1),
            flag(2),
            flag(3),
            flag(4),
            flag(5),
            flag(6),
            flag(7),
            static_cast<uint8_t>(bits >> 8),
            static_cast<ptx::Combine>(bits >> 16 & 0xff),
            static_cast<int32_t>(static_cast<uint32_t>(bits >> 32))};
  }
};

}  // namespace assay::vm
