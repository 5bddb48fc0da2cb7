// gla in chunks of 64 tokens in one launch: a block owns one sequence and head and 32 value channels, keeps
// their state in registers, and goes from chunk to chunk: scores (chunk_scores.cuh), outputs
// (chunk_output.cuh), state (chunk_state.cuh). The same operations in the same order as the two launches, so
// the same bits.
#pragma once
#include "../channel/chunk_output.cuh"
#include "fused_chunk_layout.h"

// A block's shared memory.
template <class Format, class Gate, int key_steps>
struct FusedShared {
  using Element = Format;
  using Operand = typename OperandOf<Format>::Type;
  using KeyTile = Tile<Format, 64>;
  using GateTile = Tile<Gate, 64>;
  using ValueTile = Tile<Format, assay::device::fused_columns>;
  static constexpr int gate_bytes = int(sizeof(typename Gate::Bits));
  static constexpr bool always_early =
      assay::gla::FusedLayout(sizes_of_format<Format>, gate_bytes,
                              assay::channel::ExchangeLayout(Operand::block_bytes, 4 * key_steps))
          .early;
  Exchange<Operand> exchange;
  char *values, *keys, *gates;
  bool early;  // k and g have a place of their own

  __device__ FusedShared(char* shared, const assay::channel::ExchangeLayout& exchange_layout, int warp)
      : exchange(shared, exchange_layout, warp) {
    constexpr assay::device::FormatSizes sizes = sizes_of_format<Format>;
    const assay::gla::FusedLayout layout(sizes, gate_bytes, exchange_layout);
    values = shared + layout.values_offset;
    early = always_early || layout.early;
    keys = early ? values + ValueTile::bytes : shared;
    gates = keys + KeyTile::bytes;
  }
};

// Where one sequence and head lie: its first token, channel 0 (v, o: the block's first).
template <class Format, class Gate, int key_steps>
struct FusedInputs {
  using Shared = FusedShared<Format, Gate, key_steps>;
  const typename Format::Bits *q, *k, *v;
  const typename Gate::Bits* g;  // or null
  Shape shape;
  int live_values;  // from the block's first on

  __device__ i64 key_stride() const { return i64(shape.heads) * shape.key_channels; }
  __device__ i64 value_stride() const { return i64(shape.heads) * shape.value_channels; }

  __device__ __forceinline__ void load_values(const Shared& shared, i64 begin, int rows) const {
    load_tile<typename Shared::ValueTile, 128>(shared.values, v + begin * value_stride(), value_stride(),
                                               rows, live_values, shape.vector);
  }
  // 64 key channels from `key` on.
  __device__ __forceinline__ void load_keys(const Shared& shared, i64 begin, int rows, int key) const {
    const i64 at = begin * key_stride() + key;
    load_tile<typename Shared::KeyTile, 128>(shared.keys, k + at, key_stride(), rows,
                                             shape.key_channels - key, shape.vector);
    if (g != nullptr)
      load_tile<typename Shared::GateTile, 128>(shared.gates, g + at, key_stride(), rows,
                                                shape.key_channels - key, shape.vector);
    else
#pragma unroll 1
      for (int i = int(threadIdx.x); i < Shared::GateTile::bytes / 4; i += 128)
        reinterpret_cast<u32*>(shared.gates)[i] = 0;
  }
};

// key_steps: blocks of 64 key channels, at least as many as there are.
template <class Format, class Gate, int key_steps>
__device__ __forceinline__ void fused_chunk(const typename Format::Bits* q, const typename Format::Bits* k,
                                            const typename Format::Bits* v, const typename Gate::Bits* g,
                                            const float* initial_state, typename Format::Bits* o,
                                            float* final_state, const i64* sequences, float scale,
                                            Shape shape) {
  using Shared = FusedShared<Format, Gate, key_steps>;
  using Operand = typename Shared::Operand;
  constexpr int value_groups = 2;  // those of a block; live_groups: of them, that are there
  extern __shared__ __align__(16) char base[];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int K = shape.key_channels, V = shape.value_channels, value_blocks = (V + 31) / 32;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * 32;
  block /= value_blocks;
  const int head = block % shape.heads, sequence = block / shape.heads;
  const i64 first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1];
  const i64 state_base = (i64(sequence) * shape.heads + head) * K, token = first * shape.heads + head;
  const FusedInputs<Format, Gate, key_steps> in{
      q + token * K, k + token * K,  v + token * V + value_begin, g == nullptr ? nullptr : g + token * K,
      shape,         V - value_begin};
  const assay::channel::ExchangeLayout layout(Operand::block_bytes, shape.key_groups());
  const Shared shared(base, layout, warp);
  const int live_groups = shape.value_groups() - (value_begin >> 4);

  ChannelState<value_groups> state[key_steps];
  const auto for_each =
      [&](auto visit) {  // visit(element, where it lies in a tensor of states), of those that are there
#pragma unroll
        for (int part = 0; part < key_steps; ++part)
          state[part].for_each(lane, [&](float& s, int value, int key) {
            value += value_begin, key += 64 * part + 16 * warp;
            if (key < K && value < V) visit(s, (state_base + key) * V + value);
          });
      };
#pragma unroll
  for (int part = 0; part < key_steps; ++part) state[part].clear();
  if (initial_state != nullptr) for_each([&](float& s, i64 at) { s = initial_state[at]; });

#pragma unroll 1
  for (i64 begin = 0; begin < tokens; begin += 64) {
    const int rows = int(min(i64(64), tokens - begin)), live_rows = rows - 16 * warp;
    in.load_values(shared, begin, rows);
    if (shared.early) in.load_keys(shared, begin, rows, 0);
    commit_copies();

    Scores<Format, Gate, Forward> scores;
    const i64 at = (begin + 16 * warp) * in.key_stride();
    scores.run({in.q + at, in.k + at, in.g == nullptr ? nullptr : in.g + at, nullptr}, in.key_stride(),
               live_rows, shared.exchange, shape, warp, lane, [] {});
    Operand weights[4];
    scores.operands(weights, scale, warp, lane);
    OutputTile<Operand, value_groups> out;
    out.clear();
#pragma unroll
    for (int part = 0; part < key_steps; ++part) {
      __syncthreads();  // everyone is done with the keys, or the copies of the last 64 key channels
      char* const copies = shared.exchange.keys;
#pragma unroll
      for (int i = 0; i < value_groups; ++i) {
        float x[2][4];
        state[part].block(i, x);
        Operand::store_second_values(copies + (4 * i + warp) * Operand::block_bytes, lane, x);
      }
      __syncthreads();
      const int groups = min(4, shape.key_groups() - 4 * part);
      if (live_rows > 0)
        out.add_state(shared.exchange.queries + 4 * part * Exchange<Operand>::query_bytes, copies, groups,
                      live_groups, lane);
    }
    wait_copies<0>();
    __syncthreads();  // v is there; everyone is done with the queries
#pragma unroll
    for (int i = 0; i < value_groups; ++i)
      if (live_rows > 0 && i < live_groups) {
        out.template add_scores<typename Shared::ValueTile>(i, weights, shared.values, warp, lane);
        out.template store<Format>(i, o + (token + (begin + 16 * warp) * shape.heads) * V, in.value_stride(),
                                   value_begin + 16 * i, live_rows, scale, shape, lane);
      }
#pragma unroll
    for (int part = 0; part < key_steps; ++part) {
      if (part > 0 || !shared.early) {
        if (part > 0) __syncthreads();  // everyone is done with the last 64 key channels
        in.load_keys(shared, begin, rows, 64 * part);
        commit_copies();
        wait_copies<0>();
        __syncthreads();
      }
      if (64 * part + 16 * warp < K)
        state[part].template advance<Forward, Shared, Gate>(shared.keys, shared.gates, shared.values, 1.0f,
                                                            warp, lane);
    }
    __syncthreads();  // everyone is done with k, g and v
  }
  for_each([&](float& s, i64 at) { final_state[at] = s; });
}
