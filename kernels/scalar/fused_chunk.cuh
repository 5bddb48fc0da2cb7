// The chunked form in one launch: a block owns one sequence and head and 32 value channels, keeps their state
// in registers, and goes from chunk to chunk; 64 key channels at a time, 16 of them per warp. The same
// operations in the same order as state_scan.cuh and chunk_product.cuh, so the same bits.
#pragma once
#include "chunk_rows.cuh"
#include "state_scan.cuh"

template <class Format>
struct FusedShared {
  using Operand = typename OperandOf<Format>::Type;
  using KeyTile = Tile<Format, 64>;
  using ValueTile = Tile<Format, assay::device::fused_columns>;
  static constexpr assay::scalar::FusedLayout layout{sizes_of_format<Format>};
  static constexpr int stages = layout.stages, keys = layout.keys_offset, stage_bytes = layout.stage_bytes,
                       values = layout.values_offset,
                       state = layout.state_offset;  // state: [value group of 2][key group of 4]
};

template <class Format, class Gate, int key_steps>
struct FusedChunk {
  using Shared = FusedShared<Format>;
  using Operand = typename Shared::Operand;
  using KeyTile = typename Shared::KeyTile;
  using ValueTile = typename Shared::ValueTile;
  using Bits = typename Format::Bits;

  const Bits *q, *k, *v;  // sequence's first token, the head, channel 0 (v: the block's first)
  Shape shape;
  int value_begin;
  i64 tokens;
  char* shared;

  __device__ char* queries(i64 step) const {
    return shared + int(step % Shared::stages) * Shared::stage_bytes;
  }
  __device__ char* values(i64 chunk) const {
    return shared + Shared::values + int(chunk % Shared::stages) * ValueTile::bytes;
  }
  // Starts loading what step `step` needs: 64 key channels of a chunk's q and k; v with the first of them.
  __device__ __forceinline__ void load(i64 step) const {
    const i64 chunk = step / key_steps;
    const int rows = int(min(i64(64), tokens - 64 * chunk)), key = 64 * int(step % key_steps);
    if (rows > 0) {
      const i64 token = 64 * chunk * shape.heads;
      const i64 key_stride = i64(shape.heads) * shape.key_channels,
                value_stride = i64(shape.heads) * shape.value_channels;
      char* to = queries(step);
      load_tile<KeyTile, 128>(to, q + token * shape.key_channels + key, key_stride, rows,
                              shape.key_channels - key, shape.vector);
      load_tile<KeyTile, 128>(to + Shared::keys, k + token * shape.key_channels + key, key_stride, rows,
                              shape.key_channels - key, shape.vector);
      if (key == 0)
        load_tile<ValueTile, 128>(values(chunk), v + token * shape.value_channels, value_stride, rows,
                                  shape.value_channels - value_begin, shape.vector);
    }
    commit_copies();
  }
};

template <class Format, class Gate, int key_steps>
__device__ __forceinline__ void fused_chunk(const typename Format::Bits* q, const typename Format::Bits* k,
                                            const typename Format::Bits* v, const typename Gate::Bits* gates,
                                            const float* initial_state, typename Format::Bits* o,
                                            float* final_state, const i64* sequences, float scale,
                                            Shape shape) {
  using Kernel = FusedChunk<Format, Gate, key_steps>;
  using Shared = FusedShared<Format>;
  using Operand = typename Shared::Operand;
  using KeyTile = typename Shared::KeyTile;
  using ValueTile = typename Shared::ValueTile;
  extern __shared__ __align__(16) char base[];
  __shared__ PairDecays decays[2];
  __shared__ ChunkWeights weights[2];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int K = shape.key_channels, V = shape.value_channels, columns = Shared::ValueTile::columns,
            value_blocks = (V + columns - 1) / columns;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * columns;
  block /= value_blocks;
  const int head = block % shape.heads, sequence = block / shape.heads;
  const i64 first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1];
  const i64 state_base = (i64(sequence) * shape.heads + head) * K, token = first * shape.heads + head;
  const int value_groups = min(2, shape.value_groups() - (value_begin >> 4));
  const Kernel kernel{q + token * K, k + token * K, v + token * V + value_begin, shape, value_begin,
                      tokens,        base};

  StateTile<2> state[key_steps];
#pragma unroll
  for (int part = 0; part < key_steps; ++part)
    state[part].for_each(lane, [&](float& s, int value, int key) {
      value += value_begin, key += 64 * part + 16 * warp;
      s = initial_state != nullptr && key < K && value < V ? initial_state[(state_base + key) * V + value]
                                                           : 0.0f;
    });

  // Warp 0 sums the gates of a chunk while the chunk before is used, from gates loaded one chunk earlier.
  float y[2] = {0.0f, 0.0f};
  const auto fill = [&](i64 chunk) {
    decays[chunk & 1].fill(y, lane);
    weights[chunk & 1].template fill<false>(y, lane);
    load_gates<Gate>(y, gates, first + 64 * (chunk + 1), tokens - 64 * (chunk + 1), head, shape.heads, lane);
  };
  if (has_decay<Gate> && warp == 0) {
    load_gates<Gate>(y, gates, first, tokens, head, shape.heads, lane);
    fill(0);
  }
  if (Shared::stages == 2) kernel.load(0);
  for (i64 chunk = 0; 64 * chunk < tokens; ++chunk) {
    const int live_rows = int(min(i64(64), tokens - 64 * chunk)) - 16 * warp;
    ScoreRows<Operand> scores;
    OutputRows<Operand, 2> out;
    scores.clear();
    out.clear();
#pragma unroll
    for (int part = 0; part < key_steps; ++part) {
      const i64 step = chunk * key_steps + part;
      const int key_groups = min(4, shape.key_groups() - 4 * part);
      if (Shared::stages == 1) kernel.load(step);
      char* const copies = base + Shared::state;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float x[2][4];
        state[part].block(i, x);
        Operand::store_second_values(copies + (4 * i + warp) * Operand::block_bytes, lane, x);
      }
      wait_copies<0>();
      __syncthreads();
      if (Shared::stages == 2) kernel.load(step + 1);
      if (has_decay<Gate> && part == 0 && warp == 0) fill(chunk + 1);
      const char* queries = kernel.queries(step);
      if (live_rows > 0) {
        scores.template add<KeyTile>(queries, queries + Shared::keys, key_groups, warp, lane);
        out.template add_state<KeyTile>(queries, copies, key_groups, value_groups, warp, lane);
      }
      if (16 * warp < K - 64 * part)
        state[part].template advance<Gate, false, KeyTile, ValueTile, Operand>(
            queries + Shared::keys, kernel.values(chunk), 16 * warp, weights[chunk & 1], 1.0f, lane);
      if (part == key_steps - 1 && live_rows > 0) {
        scores.template weigh<Gate>(decays[chunk & 1], warp, lane);
        Operand weighed[4];
#pragma unroll
        for (int m = 0; m < 4; ++m)
          if (m <= warp) weighed[m] = scores.operand(m);
        if constexpr (has_decay<Gate>) out.times(decays[chunk & 1].from_start, warp, lane);
        out.template add_scores<ValueTile>(weighed, kernel.values(chunk), value_groups, warp, lane);
        out.template store<Format>(o + (token + (64 * chunk + 16 * warp) * shape.heads) * V, value_begin, V,
                                   live_rows, scale, shape, lane);
      }
      __syncthreads();
    }
  }
#pragma unroll
  for (int part = 0; part < key_steps; ++part)
    state[part].for_each(lane, [&](float& s, int value, int key) {
      value += value_begin, key += 64 * part + 16 * warp;
      if (key < K && value < V) final_state[(state_base + key) * V + value] = s;
    });
}
