// Shared memory of gla.fused_chunk. Host and device compile this file (C++17).
#pragma once
#include "../channel/chunk_layout.h"
#include "../device/fused_layout.h"

namespace assay::gla {

/// The exchange of the scores, v, then k and g of 64 key channels. The copies of the state as operands take
/// the exchange's keys' place; k and g that of its queries, once these are used, where all that exceeds 99
/// KiB (not `early`).
struct FusedLayout {
  int values_offset, keys_offset, gates_offset;
  int bytes;
  bool early;

  HOST_DEVICE constexpr FusedLayout(device::FormatSizes format, int gate,
                                    const channel::ExchangeLayout& exchange)
      : values_offset(exchange.end()), keys_offset(0), gates_offset(0), bytes(0), early(false) {
    const int end = values_offset + device::tile_bytes(format.element, device::fused_columns),
              key_tile = device::tile_bytes(format.element, 64),
              tiles = key_tile + device::tile_bytes(gate, 64);
    early = end + tiles <= device::most_shared_bytes;
    keys_offset = early ? end : 0;
    gates_offset = keys_offset + key_tile;
    bytes = early ? end + tiles : end;
  }
};

}  // namespace assay::gla
