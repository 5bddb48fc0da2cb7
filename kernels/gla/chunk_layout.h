// Sizes that the plans of gla.chunk and its kernels agree on.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/kernel.h"

namespace assay::gla {

/// Tokens per chunk, counted from each sequence's start.
inline constexpr int64_t chunk_tokens = 64;

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Shared memory, operand and workspace sizes as in tile.cuh, operand.cuh, chunk_state.cuh,
/// chunk_output.cuh and chunk_keys.cuh.
struct ChunkLayout {
  int64_t element, gate, operand_block;

  explicit ChunkLayout(const Case& c)
      : element(format(c.dtype).bytes),
        gate(format(c.gate_dtype).bytes),
        operand_block(c.dtype == Dtype::bf16 ? 512 : 1024) {}
  /// One chunk's and head's state as operands, and as a plain matrix of what operands keep.
  int64_t operand_bytes(const Sizes& s) const {
    return ceil_div(s.V, 16) * ceil_div(s.K, 16) * operand_block;
  }
  int64_t plain_bytes(const Sizes& s) const { return ceil_div(s.V, 16) * ceil_div(s.K, 16) * 256 * plain(); }
  int64_t plain() const { return operand_block == 512 ? 2 : 4; }
  int64_t scan_blocks(const Sizes& s, int64_t columns) const {
    return s.N * s.H * ceil_div(s.K, 64) * ceil_div(s.V, columns);
  }
  static int64_t tile(int64_t bytes, int64_t columns) { return 64 * (columns * bytes + 16) + 4 * 32; }
  /// `keys`, `queries`: bytes per element of k in the scan, of q for its gradient; 0: as the others.
  uint32_t state_bytes(int64_t columns, int64_t keys = 0) const {
    const int64_t stage = tile(keys ? keys : element, 64) + tile(gate, 64) + tile(element, columns);
    return static_cast<uint32_t>(stage * (3 * stage <= 75776 ? 3 : 2));
  }
  uint32_t output_bytes(const Sizes& s) const {
    const bool early = operand_block == 512;
    const int64_t keys = 4 * ceil_div(s.K, 16) * 1024 + 3 * 64 * 4,
                  stage = 16 * operand_block + tile(element, 64);
    const int64_t stages_begin = keys + (early ? 12 * operand_block : 0);
    const int64_t steps = ceil_div(s.K, 64) * ceil_div(s.V, 64);
    const int64_t stages = early && steps > 1 && stages_begin + 2 * stage <= 101376 ? 2 : 1;
    return static_cast<uint32_t>(std::max(stages_begin + stages * stage, keys + 12 * operand_block));
  }
  uint32_t keys_bytes(int64_t queries = 0) const {
    const int64_t inputs = tile(queries ? queries : element, 64) + tile(element, 64) + tile(gate, 64),
                  stage = 2 * tile(element, 64) + 2 * tile(plain(), 64),
                  products = ceil_div(tile(plain(), 64) + 64 * 4, 16) * 16;
    const bool early = inputs + stage <= 101376;
    return static_cast<uint32_t>(early ? inputs + stage : std::max(products + inputs, stage));
  }
};

/// Value channels per block. Bits do not depend on them. States: narrow blocks where wide ones leave
/// multiprocessors idle, and for fp32, whose wide stages exceed 99 KiB.
inline int64_t state_columns(const Case& c, const Sizes& s) {
  if (c.dtype == Dtype::fp32) return 32;
  if (c.dtype == Dtype::fp16) return 64;
  const bool idle = s.V > 32 && s.N * s.H * ceil_div(s.K, 64) * ceil_div(s.V, 64) < 132;
  return idle ? 32 : 64;
}

}  // namespace assay::gla
