// The layouts of the chunked kernels with decays per key channel, for a case.
#pragma once
#include <string>

#include "kernels/channel/chunk_layout.h"
#include "kernels/device/format_sizes.h"
#include "kernels/kernel.h"

namespace assay::channel {

using device::blocks_of;

/// Bytes of shared memory and workspaces, of one case.
struct CaseLayout {
  Sizes sizes;
  device::FormatSizes element;
  int gate;                ///< bytes of a gate
  int64_t state_elements;  ///< of one chunk and head, both sizes padded to multiples of 16
  ExchangeLayout exchange;

  explicit CaseLayout(const ResolvedCase& c)
      : sizes(c.sizes),
        element(device::format_sizes(c.dtype)),
        gate(format(c.gate_dtype).bytes),
        state_elements(device::padded_state(sizes.K, sizes.V)),
        exchange(element.operand_block, static_cast<int>(blocks_of(sizes.K, 16))) {}

  /// One chunk's and head's state as operands, and as a plain matrix of what operands keep.
  int64_t operand_bytes() const { return state_elements / 256 * element.operand_block; }
  int64_t plain_bytes() const { return state_elements * element.kept; }
  int64_t key_blocks() const { return blocks_of(sizes.K, block_channels); }
  int64_t scan_blocks(int columns) const {
    return sizes.N * sizes.H * key_blocks() * blocks_of(sizes.V, columns);
  }
  /// Shared memory. `key`, `query`: bytes per element of k in the scan, of q for its gradient; 0: as the
  /// others.
  int state_shared(int columns, int key = 0, int blocks = 3) const {
    return StateStageLayout(key ? key : element.element, gate, element.element, columns, blocks)
        .shared_bytes();
  }
  int output_shared() const {
    return OutputLayout(element, exchange, static_cast<int>(key_blocks() * blocks_of(sizes.V, 64))).bytes;
  }
  int keys_shared(int query = 0) const { return keys_layout(query).bytes; }
  /// Of a block of the keys' gradients.
  uint32_t key_threads(bool exclusive) const {
    return device::block_threads * (exclusive ? 1 : KeysLayout::halves(element));
  }
  KeysLayout keys_layout(int query = 0) const {
    return KeysLayout(element, gate, query ? query : element.element);
  }
};

/// Of the GPU that blocks are dealt for, an H200.
inline constexpr int64_t multiprocessors = 132;

/// Value channels per block of the state scan. Bits do not depend on them: narrow blocks where wide ones are
/// not there, or leave multiprocessors idle.
inline int scan_columns(const ResolvedCase& c, const CaseLayout& layout) {
  const int widths = c.dtype == Dtype::bf16   ? SCAN_WIDTHS(Bf16)
                     : c.dtype == Dtype::fp16 ? SCAN_WIDTHS(Fp16)
                                              : SCAN_WIDTHS(Fp32);
  if (!(widths & 64)) return 32;
  const bool idle = layout.sizes.V > 32 && layout.scan_blocks(64) < multiprocessors;
  return (widths & 32) && idle ? 32 : 64;
}

/// What the function's name ends with that makes the case's outputs, or dv.
inline std::string output_suffix(const ResolvedCase& c) {
  return c.dtype == Dtype::bf16 && c.sizes.K <= 64 && c.sizes.V <= 64 ? "_64" : "";
}

}  // namespace assay::channel
