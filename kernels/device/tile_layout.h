// How tiles and operands lie in memory. Host and device compile this file (C++17): plans take sizes from
// where kernels take them. Sizes are in bytes.
#pragma once

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

namespace assay::device {

/// 99 KiB: what a block may have since sm_86.
inline constexpr int most_shared_bytes = 101376;
/// 74 KiB: three blocks on a multiprocessor of sm_90.
inline constexpr int third_of_shared_bytes = 75776;
/// 56 KiB: four.
inline constexpr int quarter_of_shared_bytes = 57344;

HOST_DEVICE constexpr long long blocks_of(long long count, int each) {
  return (count + each - 1) / each;
}

/// Of most kernels.
inline constexpr int block_threads = 128;

/// What layouts need to know of a storage format.
struct FormatSizes {
  int element;        ///< in tensors
  int kept;           ///< of an element of a state that is kept for gradients (StateOf in operand.cuh)
  int operand_block;  ///< of a 16 x 16 operand in memory (OperandOf in operand.cuh)
};
inline constexpr FormatSizes bf16_sizes{2, 2, 512}, fp16_sizes{2, 4, 1024}, fp32_sizes{4, 4, 1024};

/// Elements of a state, both sizes padded to multiples of 16.
HOST_DEVICE constexpr long long padded_state(long long keys, long long values) {
  return 256 * blocks_of(keys, 16) * blocks_of(values, 16);
}

/// A tile of 64 tokens in shared memory (tile.cuh): rows padded by 16 bytes and every 16 rows by 32 bytes
/// more, so that both the strided reads of the state scan and ldmatrix hit every bank once.
inline constexpr int tile_rows = 64;
HOST_DEVICE constexpr int tile_row_bytes(int element, int columns) {
  return columns * element + 16;
}
HOST_DEVICE constexpr int tile_offset(int element, int columns, int row, int column) {
  return row * tile_row_bytes(element, columns) + (row >> 4) * 32 + column * element;
}
HOST_DEVICE constexpr int tile_bytes(int element, int columns) {
  return tile_offset(element, columns, tile_rows, 0);
}

}  // namespace assay::device
