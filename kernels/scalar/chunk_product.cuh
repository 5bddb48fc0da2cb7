// Second kernel of the chunked form: o_i = scale (e^{G_i} S^T q_i + sum_{j<=i} e^{G_i - G_j} (q_i . k_j)
// v_j). A block owns one chunk of 64 tokens and one head; each of its 4 warps owns 16 tokens.
#pragma once
#include "chunk_rows.cuh"
#include "state_scan.cuh"

template <class Format>
struct ProductShared {
  using Operand = typename OperandOf<Format>::Type;
  using Tile64 = Tile<Format, 64>;
  static constexpr assay::scalar::ProductLayout layout{sizes_of_format<Format>};
  static constexpr int keys = layout.keys_offset, values = layout.values_offset,
                       state = layout.state_offset;  // state: [value group of 4][key group of 4]
};

template <class Format, class Gate>
struct ChunkProduct {
  using Shared = ProductShared<Format>;
  using Operand = typename Shared::Operand;
  using T = typename Shared::Tile64;
  using Bits = typename Format::Bits;

  const Bits *q, *k, *v;  // chunk's first token, the head, channel 0
  const char* states;     // the chunk's and head's
  Shape shape;
  int rows;
  char* shared;

  __device__ int key_steps() const { return (shape.key_channels + 63) / 64; }
  __device__ void load_queries(int step) const {
    load_tile<T, 128>(shared, q + 64 * step, i64(shape.heads) * shape.key_channels, rows,
                      shape.key_channels - 64 * step, shape.vector);
  }
  __device__ void load_keys(int step) const {
    load_tile<T, 128>(shared + Shared::keys, k + 64 * step, i64(shape.heads) * shape.key_channels, rows,
                      shape.key_channels - 64 * step, shape.vector);
  }
  __device__ void load_values(int step) const {
    load_tile<T, 128>(shared + Shared::values, v + 64 * step, i64(shape.heads) * shape.value_channels, rows,
                      shape.value_channels - 64 * step, shape.vector);
  }
  __device__ void load_state(int key_step, int value_step) const {
    const int key_group = 4 * key_step, value_group = 4 * value_step;
    const int run = min(4, shape.key_groups() - key_group) * Operand::block_bytes;
    const int value_groups = min(4, shape.value_groups() - value_group);
    const i64 stride = i64(shape.key_groups()) * Operand::block_bytes;
    const char* from = states + value_group * stride + key_group * Operand::block_bytes;
    char* to = shared + Shared::state;
    for (int i = 0; i < value_groups; ++i)
#pragma unroll
      for (int piece = 0; piece < 4 * Operand::block_bytes / (128 * 16); ++piece) {
        const int byte = (128 * piece + int(threadIdx.x)) * 16;
        if (byte < run) copy_async(to + i * 4 * Operand::block_bytes + byte, from + i * stride + byte, 16);
      }
  }
};

template <class Format, class Gate>
__device__ __forceinline__ void chunk_product(const typename Format::Bits* q, const typename Format::Bits* k,
                                              const typename Format::Bits* v,
                                              const typename Gate::Bits* gates, const char* states,
                                              typename Format::Bits* o, const i64* chunks, float scale,
                                              Shape shape) {
  using Product = ChunkProduct<Format, Gate>;
  using Shared = ProductShared<Format>;
  using Operand = typename Shared::Operand;
  using T = typename Shared::Tile64;
  extern __shared__ __align__(16) char base[];
  __shared__ PairDecays decays;

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  // Late chunks first: what the scan has just read and written lies in the cache.
  const int head = int(blockIdx.x) % shape.heads,
            chunk = int(gridDim.x) / shape.heads - 1 - int(blockIdx.x) / shape.heads;
  const i64 first = chunks[2 * i64(chunk)];
  const int rows = int(chunks[2 * i64(chunk) + 1]), live_rows = rows - 16 * warp;
  const i64 token = first * shape.heads + head;
  const i64 state_blocks = i64(shape.value_groups()) * shape.key_groups();
  const Product product{q + token * shape.key_channels,
                        k + token * shape.key_channels,
                        v + token * shape.value_channels,
                        states + (i64(chunk) * shape.heads + head) * state_blocks * Operand::block_bytes,
                        shape,
                        rows,
                        base};
  const int key_steps = product.key_steps();

  float y[2] = {0.0f, 0.0f};  // ahead of everything: their sums take longest
  if (has_decay<Gate> && warp == 0) load_gates<Gate>(y, gates, first, rows, head, shape.heads, lane);
  product.load_queries(0);
  product.load_keys(0);
  commit_copies();
  product.load_state(0, 0);
  product.load_values(0);
  commit_copies();
  if (has_decay<Gate> && warp == 0) decays.fill(y, lane);
  ScoreRows<Operand> scores;
  scores.clear();
  for (int step = 0; step < key_steps; ++step) {
    if (step > 0) {
      __syncthreads();  // everyone is done with the last 64 key channels
      product.load_queries(step);
      product.load_keys(step);
      commit_copies();
      wait_copies<0>();
    } else {
      wait_copies<1>();
    }
    __syncthreads();
    if (live_rows > 0)
      scores.template add<T>(base, base + Shared::keys, min(4, shape.key_groups() - 4 * step), warp, lane);
  }
  Operand weighed[4];
  if (live_rows > 0) {
    scores.template weigh<Gate>(decays, warp, lane);
#pragma unroll
    for (int m = 0; m < 4; ++m)
      if (m <= warp) weighed[m] = scores.operand(m);
  }

  typename Format::Bits* const to = o + (token + i64(16 * warp) * shape.heads) * shape.value_channels;
  OutputRows<Operand, 4> out;
#pragma unroll 1
  for (int value_step = 0; 64 * value_step < shape.value_channels; ++value_step) {
    const int value_groups = min(4, shape.value_groups() - 4 * value_step);
    out.clear();
#pragma unroll 1
    for (int step = 0; step < key_steps; ++step) {
      const bool again = value_step > 0 || step > 0;  // the first state and values are on their way already
      if (again || key_steps > 1) __syncthreads();
      if (again) product.load_state(step, value_step);
      if (again && step == 0) product.load_values(value_step);
      if (key_steps > 1) product.load_queries(step);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
      if (live_rows > 0)
        out.template add_state<T>(base, base + Shared::state, min(4, shape.key_groups() - 4 * step),
                                  value_groups, warp, lane);
    }
    if (live_rows <= 0) continue;
    if constexpr (has_decay<Gate>) out.times(decays.from_start, warp, lane);
    out.template add_scores<T>(weighed, base + Shared::values, value_groups, warp, lane);
    out.template store<Format>(to, 64 * value_step, shape.value_channels, live_rows, scale, shape, lane);
  }
}
