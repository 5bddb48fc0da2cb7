// gla.fused_recurrent: what its scans share, forward and backward. A block of 128 threads owns rows of the
// state (or of its transpose), `lanes` lanes per row; a lane holds `per_lane` columns. Tokens come eight at a
// time, and sums over the columns are reduced for all eight at once: every lane ends with one of them.
#pragma once
#include "decay.cuh"
#include "format.cuh"
#include "scan_roles.cuh"

constexpr int segment = assay::device::segment_tokens;
constexpr int chunk_bits = 6, chunk = 1 << chunk_bits;  // tokens between states that are kept
static_assert(chunk == assay::device::kept_tokens);
constexpr int segments = chunk / segment;

// How `capacity` columns lie over lanes.
template <int capacity>
struct Columns {
  static constexpr assay::device::ColumnsLayout layout{capacity};
  static constexpr int per_lane = layout.per_lane, lanes = layout.lanes, rows = layout.rows,
                       held = layout.held, scan_rows = layout.scan_rows;
  static __device__ int of(int lane, int i) {
    return per_lane == 2 ? 2 * lane + i : 4 * (lane + lanes * (i >> 2)) + (i & 3);
  }
  // The lane's columns of one row, aligned, two or four at a time.
  static constexpr int wide = per_lane == 2 ? 2 : 4;
  static __device__ void load(const float* row, int lane, float (&x)[per_lane]) {
#pragma unroll
    for (int i = 0; i < per_lane; i += wide) load_wide(row + of(lane, i), x + i);
  }
  static __device__ void load_wide(const float* from, float* x) {
    if constexpr (wide == 2) {
      const float2 pair = *reinterpret_cast<const float2*>(from);
      x[0] = pair.x, x[1] = pair.y;
    } else {
      const float4 quad = *reinterpret_cast<const float4*>(from);
      x[0] = quad.x, x[1] = quad.y, x[2] = quad.z, x[3] = quad.w;
    }
  }
  static __device__ void store_wide(float* to, const float* x) {
    if constexpr (wide == 2)
      *reinterpret_cast<float2*>(to) = make_float2(x[0], x[1]);
    else
      *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
  }
};

// Where a thread stands if its neighbours have the same columns of other rows: loads of 16 bytes, which
// pairs of lanes share then, take half of the time.
template <int capacity>
struct SpreadLanes {
  static constexpr int apart = 32 / Columns<capacity>::lanes;  // so far are lanes of a row from each other
  static __device__ int lane() { return int(threadIdx.x) % 32 / apart; }
  static __device__ int row() { return int(threadIdx.x) / 32 * apart + int(threadIdx.x) % apart; }
};

// The lane's columns of one row of a state in a tensor, which begins at `row`; zeros where there is no tensor
// (null), row (not live) or column.
template <class Lanes>
__device__ __forceinline__ void load_row(float (&x)[Lanes::per_lane], const float* tensor, i64 row, bool live,
                                         int columns, int lane) {
#pragma unroll
  for (int i = 0; i < Lanes::per_lane; ++i) {
    const int column = Lanes::of(lane, i);
    x[i] = tensor != nullptr && live && column < columns ? tensor[row + column] : 0.0f;
  }
}
// Nothing is stored where there is no tensor, row or column.
template <class Lanes>
__device__ __forceinline__ void store_row(float* tensor, i64 row, bool live, int columns, int lane,
                                          const float (&x)[Lanes::per_lane]) {
#pragma unroll
  for (int i = 0; i < Lanes::per_lane; ++i) {
    const int column = Lanes::of(lane, i);
    if (tensor != nullptr && live && column < columns) tensor[row + column] = x[i];
  }
}

// One row in a workspace of `capacity` columns; zeros where it is not live, and of two or four columns where
// none is among the first `columns`.
template <class Lanes>
__device__ __forceinline__ void load_kept_row(float (&x)[Lanes::per_lane], const float* row, bool live,
                                              int columns, int lane) {
#pragma unroll
  for (int i = 0; i < Lanes::per_lane; i += Lanes::wide) {
#pragma unroll
    for (int c = 0; c < Lanes::wide; ++c) x[i + c] = 0.0f;
    if (live && Lanes::of(lane, i) < columns) Lanes::load_wide(row + Lanes::of(lane, i), x + i);
  }
}
template <class Lanes>
__device__ __forceinline__ void keep_row(float* row, int lane, const float (&x)[Lanes::per_lane]) {
#pragma unroll
  for (int i = 0; i < Lanes::per_lane; i += Lanes::wide) Lanes::store_wide(row + Lanes::of(lane, i), x + i);
}

// Sums of x[step] over the lanes of a row, `apart` lanes from each other: the lane gets that of step
// lane / (lanes / 8). All steps are added in the same order, so that a token's sum does not depend on its
// place in the segment.
template <int lanes, int apart = 1>
__device__ __forceinline__ float sum_over_lanes(float (&x)[segment], int lane) {
  int mask = lanes / 2;
#pragma unroll
  for (int n = segment / 2; n >= 1; n /= 2, mask /= 2) {
    const bool upper = lane & mask;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float keep = upper ? x[i + n] : x[i], give = upper ? x[i] : x[i + n];
      x[i] = keep + __shfl_xor_sync(0xffffffffu, give, mask * apart);
    }
  }
#pragma unroll
  for (; mask >= 1; mask /= 2) x[0] = x[0] + __shfl_xor_sync(0xffffffffu, x[0], mask * apart);
  return x[0];
}

// Eight tokens x `width` channels on their way from a tensor [token, head, channels] to shared memory: read
// into registers ahead of time, as bits, so that nothing waits for them before they are written. Tokens and
// channels that are not there are `missing`, a zero. `attended`: of a block with warps that load.
template <class Format, int width, bool attended = false>
struct Slab {
  static constexpr int count = (segment * width + 127) / 128;
  typename Format::Bits x[count];

  // `from`: first token, the head, first channel; `stride`: elements from token to token.
  __device__ __forceinline__ void read(const typename Format::Bits* from, i64 stride, int tokens,
                                       int channels, typename Format::Bits missing = 0) {
    constexpr int across = width > 128 ? width / 128 : 1, down = width > 128 ? 1 : 128 / width;
    const int first = thread() / width, column = thread() % width;
    const typename Format::Bits* at = from + first * stride + column;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int token = first + i / across * down, beside = i % across * 128;
      x[i] = missing;
      if (token < tokens && column + beside < channels) x[i] = at[beside];
      if (beside == 128 * (across - 1)) at += down * stride;
    }
  }
  __device__ __forceinline__ void write(float (*to)[width]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = thread() + 128 * i;
      if (at < segment * width) reinterpret_cast<float*>(to)[at] = Format::decode(x[i]);
    }
  }
  __device__ __forceinline__ void write_scaled(float (*to)[width], float scale) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = thread() + 128 * i;
      if (at < segment * width) reinterpret_cast<float*>(to)[at] = Format::decode(x[i]) * scale;
    }
  }
  // Gates become decay factors.
  __device__ __forceinline__ void write_decays(float (*to)[width]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = thread() + 128 * i;
      if (at < segment * width)
        reinterpret_cast<float*>(to)[at] = decay_factor(Format::decode(x[i]) * log2_e);
    }
  }

 private:
  static __device__ __forceinline__ int thread() {
    return attended ? thread_of_scan() : int(threadIdx.x);
  }
};

// Blocks of so many rows, a power of two, that the channels are dealt to.
__device__ __forceinline__ int blocks_of(int channels, int rows) {
  return int((unsigned(channels) + rows - 1) / unsigned(rows));
}
// The last multiple of a power of two that is not above a token; -every for token -1.
__device__ __forceinline__ i64 multiple_below(i64 token, int every) {
  return token & -i64(every);
}

// Of the segment that begins where so many tokens are left.
__device__ __forceinline__ int tokens_of_segment(i64 left) {
  return int(min(i64(segment), left));
}
// Segments of a chunk that has so many tokens left.
__device__ __forceinline__ int live_segments_of(i64 tokens) {
  return blocks_of(int(min(i64(chunk), tokens)), segment);
}

// One row's S at the start of segments of a chunk (index from 1), in shared memory that only the lane itself
// reads.
template <int per_lane>
struct KeptStates {
  float (*at)[per_lane][128];
  __device__ void keep(int index, const float (&S)[per_lane]) {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) at[index - 1][i][threadIdx.x] = S[i];
  }
  __device__ void restore(int index, float (&S)[per_lane]) const {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) S[i] = at[index - 1][i][threadIdx.x];
  }
};

// One chunk and head, and the rows of one block. chunks [chunk][2]: first token, tokens.
struct ChunkPlace {
  i64 first, tokens, slot;  // slot: which chunk
  int head, row_begin;

  __device__ ChunkPlace(const i64* chunks, int heads, int row_blocks, int rows) {
    int block = int(blockIdx.x);
    row_begin = block % row_blocks * rows;
    block /= row_blocks;
    head = block % heads, slot = block / heads;
    first = chunks[2 * slot], tokens = chunks[2 * slot + 1];
  }
};

// One sequence and head, and the rows of one block.
struct Place {
  i64 first, tokens, slot;  // of the sequence; slot: its first checkpoint
  int sequence, head, row_begin;

  __device__ Place(const i64* sequences, int heads, int row_blocks, int rows, int block = int(blockIdx.x)) {
    row_begin = block % row_blocks * rows;
    block /= row_blocks;
    head = block % heads, sequence = block / heads;
    first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1], slot = sequences[3 * sequence + 2];
  }
};
