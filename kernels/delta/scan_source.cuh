// What the scans of the chunked delta rules (chunk_scan.cuh) take and give: blocks of 16 values x 16 tokens
// in registers, and a sequence's operands and values, chunk by chunk, copied to shared memory before its
// warps need them, where there is room (ScanLayout).
#pragma once
#include "../channel/fragment.cuh"
#include "../device/operand.cuh"
#include "../device/tile.cuh"
#include "../scalar/rows.cuh"
#include "chunk_layout.h"
#include "transpose.cuh"

namespace rule {

using assay::delta::PreparedLayout;

// 16 values x 16 key channels or tokens: rows values lane/4 and lane/4 + 8.
struct ValueBlock {
  Accumulator c[2];

  __device__ __forceinline__ void clear() { c[0].clear(), c[1].clear(); }
  __device__ __forceinline__ void as_places(float (&x)[2][4]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i >> 2][i & 3] = c[i & 1].r[2 * (i >> 2) + ((i & 3) >> 1)];
  }
  template <class Operand>
  __device__ __forceinline__ void add(const Operand& a, const Operand& b) {
    multiply(c[0], a, b, 0), multiply(c[1], a, b, 1);
  }
};

// 16 tokens of 16 value channels; zeros where there is no token or channel. `stride`: from token to token.
template <class Format>
__device__ __forceinline__ void load_values(float (&x)[2][4], const typename Format::Bits* from, int stride,
                                            int tile, int rows, int live_values, int lane) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int value = (lane >> 2) + 8 * (i >> 2), token = 16 * tile + element_of(i & 3, lane);
    x[i >> 2][i & 3] =
        token < rows && value < live_values ? Format::decode(from[token * stride + value]) : 0.0f;
  }
}
// `vector`: V is a multiple of 8 and pointers are aligned. Of 16 bits the lanes then exchange what they have,
// so that each stores two value channels of a token at once.
template <class Format>
__device__ __forceinline__ void store_values(const float (&x)[2][4], typename Format::Bits* to, int stride,
                                             int tile, int rows, int live_values, bool vector, int lane) {
  if constexpr (sizeof(typename Format::Bits) == 2)
    if (vector) {
      u32 pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = encode_pair<Format>(x[i & 1][i >> 1], x[i & 1][(i >> 1) + 2]);
      transpose(pairs, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int value = 8 * (i >> 1) + 2 * (lane & 3), token = 16 * tile + 8 * (i & 1) + (lane >> 2);
        if (token < rows && value < live_values)
          *reinterpret_cast<u32*>(to + token * stride + value) = pairs[i];
      }
      return;
    }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int value = (lane >> 2) + 8 * (i >> 2), token = 16 * tile + element_of(i & 3, lane);
    if (token < rows && value < live_values) to[token * stride + value] = Format::encode(x[i >> 2][i & 3]);
  }
}

template <class Format>
__device__ __forceinline__ void store_outputs(const ValueBlock (&out)[4], typename Format::Bits* o,
                                              int stride, float scale, int rows, int live_values, bool vector,
                                              int lane) {
#pragma unroll
  for (int tile = 0; tile < 4; ++tile) {
    float y[2][4];
    out[tile].as_places(y);
#pragma unroll
    for (int i = 0; i < 8; ++i) y[i >> 2][i & 3] = y[i >> 2][i & 3] * scale;
    store_values<Format>(y, o, stride, tile, rows, live_values, vector, lane);
  }
}

// What of a chunk's operands a scan needs before all else (`early`: up to there) and at its end (`late`: from
// there up to the pairs').
struct ScanForward {
  using Layout = PreparedLayout;
  static constexpr bool outputs = true;
  static constexpr int early = 8, late = 8;
};
struct ScanStates {
  using Layout = PreparedLayout;
  static constexpr bool outputs = false;
  static constexpr int early = 4, late = 8;
};
struct ScanBack {
  using Layout = PreparedLayout;
  static constexpr int early = 4, late = 4;
};

// Where the operands of the chunk at hand are: at `rows` and `pairs` plus what the kind's Layout says, and
// e^L at `decays`.
struct ChunkOperands {
  const char *rows, *pairs, *decays;
};

// One sequence and head, chunk by chunk: its operands and 64 value channels of v or dO, in shared memory
// where they are copied ahead.
template <class Format, int capacity, class Kind>
struct ScanSource {
  using Operand = typename OperandOf<Format>::Type;
  using ValueTile = Tile<Format, assay::delta::scan_values>;
  using Layout = typename Kind::Layout;
  static constexpr bool ahead = assay::delta::scans_ahead<Layout>(sizes_of_format<Format>, capacity);
  // Pairs twice and values; else pairs once.
  static constexpr bool whole_ahead =
      assay::delta::scans_whole_ahead<Layout>(sizes_of_format<Format>, capacity);

  const Layout layout;
  const assay::delta::ScanLayout<Layout> stage;
  const char* prepared;  // chunk 0's; then every chunk_bytes
  i64 chunk_bytes, tokens;
  const typename Format::Bits* values;  // token 0, the block's first value channel
  int stride, live_values;              // of the block's values
  bool vector;
  char* shared;

  __device__ __forceinline__ int rows(i64 chunk) const { return int(min(i64(64), tokens - 64 * chunk)); }

  __device__ __forceinline__ void copy(i64 chunk, int begin, int end, int shift) const {
    const char* const from = prepared + chunk * chunk_bytes;
#pragma unroll 4
    for (int byte = begin + 16 * int(threadIdx.x); byte < end; byte += 16 * 128)
      copy_async(shared + shift + byte, from + byte, 16);
  }
  __device__ __forceinline__ bool has(i64 chunk) const {
    return chunk >= 0 && 64 * chunk < tokens;
  }
  // Starts copying what a chunk begins with; `chunk` may be none of the sequence's.
  __device__ __forceinline__ void start(i64 chunk) const {
    if constexpr (ahead) {
      if (has(chunk)) {
        const int turn = int(chunk & 1);
        copy(chunk, 0, layout.reads(Kind::early, 0), 0);
        if constexpr (whole_ahead) {
          copy(chunk, layout.removal(0, 0), layout.bytes(), stage.of_pairs(turn));
          load_tile<ValueTile, 128>(shared + stage.of_values(turn), values + 64 * chunk * stride, stride,
                                    rows(chunk), live_values, vector);
        } else {
          copy(chunk, layout.decays(), layout.bytes(), stage.of_decays(turn));
        }
      }
      commit_copies();
    }
  }
  // The pairs of a chunk, where they have one place.
  __device__ __forceinline__ void start_pairs(i64 chunk) const {
    if constexpr (ahead && !whole_ahead) {
      if (has(chunk)) copy(chunk, layout.removal(0, 0), layout.decays(), 0);
      commit_copies();
    }
  }
  // Waits for that, and starts copying what the chunk ends with: every warp is done with the chunk before.
  __device__ __forceinline__ ChunkOperands enter(i64 chunk) const {
    if constexpr (ahead) {
      wait_copies<0>();
      __syncthreads();
      copy(chunk, layout.reads(Kind::late, 0), layout.removal(0, 0), 0);
      commit_copies();
      const int turn = int(chunk & 1);
      const char* const pairs = shared + stage.of_pairs(turn);
      return {shared, pairs, pairs + layout.decays() + stage.of_decays(turn)};
    } else {
      const char* const at = prepared + chunk * chunk_bytes;
      return {at, at, at + layout.decays()};
    }
  }
  // What the chunk began with has been read: starts copying that of the next one.
  __device__ __forceinline__ void pass_on(i64 next) const {
    if constexpr (ahead) {
      __syncthreads();
      start(next);
    }
  }
  // The chunk is solved: waits for what it ends with.
  __device__ __forceinline__ void wait_late(i64 next) const {
    if constexpr (ahead) {
      wait_copies<1>();
      __syncthreads();
      start_pairs(next);
    }
  }
  // The warp's 16 value channels of a tile.
  __device__ __forceinline__ void load(float (&x)[2][4], i64 chunk, int tile, int warp, int lane) const {
    if constexpr (whole_ahead)
      Fragment<ValueTile, Format>::columns(x, shared + stage.of_values(int(chunk & 1)), 16 * tile, 16 * warp,
                                           lane);
    else
      load_values<Format>(x, values + 64 * chunk * stride + 16 * warp, stride, tile, rows(chunk),
                          live_values - 16 * warp, lane);
  }
};

}  // namespace rule
