// First kernel of the chunked form: the state at every chunk's start,
//   S <- e^L S + sum_j (k_j e^{L - G_j}) v_j^T,
// one chunk of 64 tokens after the other. Backward, with q for k and do for v, the gradient of the state at
// every chunk's end, the last chunk first:
//   D <- e^L D + scale sum_i (q_i e^{G_i}) do_i^T.
// A block owns one sequence and head, 64 key channels (16 per warp) and `columns` value channels; the
// transposed state stays in registers as accumulators v x k, whose layout is the one in which the output
// kernel multiplies with it.
#pragma once
#include "../device/shape.cuh"
#include "../device/states.cuh"
#include "../device/tile_stream.cuh"
#include "chunk_layout.h"
#include "rows.cuh"
#include "token_decay.cuh"

template <class Format, int columns>
struct ScanStage {
  using KeyTile = Tile<Format, 64>;
  using ValueTile = Tile<Format, columns>;
  static constexpr assay::scalar::ScanStageLayout layout{sizes_of_format<Format>, columns};
  static constexpr int value_offset = layout.value_offset, bytes = layout.bytes, count = layout.count;
};

// What a chunk's decays mean for its state: the weight of each token, e^{L - G_j} or backward e^{G_i}, and of
// the old state.
struct ChunkWeights {
  float of_token[64];
  StateDecay state;

  // By one whole warp; lane holds the gates of tokens lane and lane + 32, 0 beyond the chunk's end.
  template <bool backward>
  __device__ void fill(const float (&y)[2], int lane) {
    TokenSums sums(y);
#pragma unroll
    for (int l = 0; l < 5; ++l) sums.double_block(l, lane);
    sums.join_halves();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      of_token[lane + 32 * half] = power_of_two(backward ? sums.up[half] : sums.after[half]);
    if (lane == 0) state = StateDecay::of(sums.total[0]);
  }
};

// The transposed state of a warp: S[i][p].r[2 h + c] is value 16 i + lane/4 + 8 h, key channel
// 8 p + 2 (lane%4) + c of the warp's sixteen.
template <int value_groups>
struct StateTile {
  Accumulator S[value_groups][2];

  template <class Visit>  // visit(element, value, key), both within the tile
  __device__ __forceinline__ void for_each(int lane, Visit visit) {
#pragma unroll
    for (int i = 0; i < value_groups * 8; ++i)
      visit(S[i >> 3][(i >> 2) & 1].r[i & 3], 16 * (i >> 3) + (lane >> 2) + 8 * ((i >> 1) & 1),
            8 * ((i >> 2) & 1) + 2 * (lane & 3) + (i & 1));
  }
  // 16 value channels x the warp's 16 key channels as x[row][place] of an operand.
  __device__ __forceinline__ void block(int i, float (&x)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      x[half][0] = S[i][0].r[2 * half], x[half][1] = S[i][1].r[2 * half];
      x[half][2] = S[i][0].r[2 * half + 1], x[half][3] = S[i][1].r[2 * half + 1];
    }
  }
  // S <- keep S + (factor S + dS), dS = sum over the chunk's tokens of (weight k) v; backward scale times it.
  template <class Gate, bool backward, class KeyTile, class ValueTile, class Operand>
  __device__ __forceinline__ void advance(const char* keys, const char* values, int key_column,
                                          const ChunkWeights& weights, float scale, int lane) {
    Accumulator sum[value_groups][2];
#pragma unroll
    for (int i = 0; i < value_groups; ++i) sum[i][0].clear(), sum[i][1].clear();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      Operand k;
      if constexpr (has_decay<Gate>)
        load_scaled_columns<KeyTile>(k, keys, key_column, 16 * step, weights.of_token, lane);
      else
        load_columns<KeyTile>(k, keys, key_column, NaturalTokens{16 * step}, lane);
#pragma unroll
      for (int i = 0; i < value_groups; ++i) {
        Operand v;
        load_columns<ValueTile>(v, values, 16 * i, NaturalTokens{16 * step}, lane);
        multiply(sum[i][0], v, k, 0);
        multiply(sum[i][1], v, k, 1);
      }
    }
    const StateDecay decay = weights.state;
#pragma unroll
    for (int i = 0; i < value_groups * 8; ++i) {
      float& s = S[i >> 3][(i >> 2) & 1].r[i & 3];
      const float added = sum[i >> 3][(i >> 2) & 1].r[i & 3], dS = backward ? added * scale : added;
      s = has_decay<Gate> ? fused(decay.keep, s, fused(decay.factor, s, dS)) : s + dS;
    }
  }
};

// The part of a state that a block owns: 64 key channels and `columns` value channels from these on, of one
// sequence and head.
template <int columns>
struct ScanBlock {
  int key, value, head, sequence;

  __device__ explicit ScanBlock(const Shape& shape) {
    constexpr int keys = assay::scalar::step_channels;
    const int key_blocks = (shape.key_channels + keys - 1) / keys,
              value_blocks = (shape.value_channels + columns - 1) / columns;
    int block = int(blockIdx.x);
    value = block % value_blocks * columns;
    block /= value_blocks;
    key = block % key_blocks * keys;
    block /= key_blocks;
    head = block % shape.heads, sequence = block / shape.heads;
  }
};

// `States`: OperandStates or PlainStates of ../device/states.cuh, of PairedKeys.
// final_state may be null. Backward: q, do, dfinal_state, dinitial_state for k, v, initial_state,
// final_state.
template <class Format, class Gate, int columns, bool backward, class States>
__device__ __forceinline__ void state_scan(const typename Format::Bits* k, const typename Format::Bits* v,
                                           const typename Gate::Bits* gates, const float* initial_state,
                                           float* final_state, States states, const i64* sequences,
                                           float scale, Shape shape) {
  using Stage = ScanStage<Format, columns>;
  using Operand = typename OperandOf<Format>::Type;
  constexpr int value_groups = columns / 16;
  extern __shared__ __align__(16) char shared[];
  __shared__ ChunkWeights weights[8];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int K = shape.key_channels, V = shape.value_channels;
  const ScanBlock<columns> block(shape);
  const int value_begin = block.value, key_begin = block.key + 16 * warp;
  const int head = block.head, sequence = block.sequence;
  const i64 first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1],
            slot = sequences[3 * sequence + 2];
  const i64 chunks = (tokens + 63) / 64;
  const i64 state_base = (i64(sequence) * shape.heads + head) * K;

  StateTile<value_groups> state;
  state.for_each(lane, [&](float& s, int value, int key) {
    value += value_begin, key += key_begin;
    s = initial_state != nullptr && key < K && value < V ? initial_state[(state_base + key) * V + value]
                                                         : 0.0f;
  });

  const auto chunk_at = [&](i64 step) { return backward ? chunks - 1 - step : step; };
  const i64 start = (first + 64 * chunk_at(0)) * shape.heads + head,
            row = (backward ? i64(-64) : i64(64)) * shape.heads;  // of tokens and heads, from chunk to chunk
  TileStream<typename Stage::KeyTile, 128> keys(k + start * K + block.key, i64(shape.heads) * K, row * K,
                                                K - block.key, shape.vector);
  TileStream<typename Stage::ValueTile, 128> values(v + start * V + value_begin, i64(shape.heads) * V,
                                                    row * V, V - value_begin, shape.vector);
  const int last_rows = int(tokens - 64 * (chunks - 1));
  const auto load_stage = [&](i64 step) {
    if (step < chunks) {
      char* stage = shared + (int(step) & (Stage::count - 1)) * Stage::bytes;
      const int rows = step == (backward ? 0 : chunks - 1) ? last_rows : 64;
      keys.load(stage, rows);
      values.load(stage + Stage::value_offset, rows);
    }
    commit_copies();
  };
#pragma unroll 1
  for (int stage = 0; stage < Stage::count - 1; ++stage) load_stage(stage);

  // A head's constant weighs all whole chunks alike, and the last one. Else each warp makes, every fourth
  // step, the weights of one of four chunks, from gates loaded four chunks earlier.
  constexpr bool fixed = Gate::width == GateWidth::head, moving = has_decay<Gate> && !fixed;
  float y[2] = {0.0f, 0.0f};
  const auto load_chunk_gates = [&](i64 step) {
    const i64 chunk = chunk_at(step);
    load_gates<Gate>(y, gates, first + 64 * chunk, step < chunks ? tokens - 64 * chunk : 0, head, shape.heads,
                     lane);
  };
  if (fixed && warp < 2) {
    load_gates<Gate>(y, gates, first, warp == 0 ? 64 : last_rows, head, shape.heads, lane);
    weights[warp].template fill<backward>(y, lane);
  }
  if (moving) {
    load_chunk_gates(warp);
    weights[warp].template fill<backward>(y, lane);
    load_chunk_gates(4 + warp);
  }
  const int live_groups = min(value_groups, shape.value_groups() - (value_begin >> 4));
  const i64 group_stride = states.group_stride(shape), all_groups = shape.value_groups() * group_stride;
  typename States::Bits* to = states.to + ((slot + chunk_at(0)) * shape.heads + head) * all_groups +
                              (value_begin >> 4) * group_stride + states.key_place(key_begin >> 4);
  for (i64 step = 0; step < chunks; ++step) {
    wait_copies<Stage::count - 2>();
    __syncthreads();
    load_stage(step + Stage::count - 1);  // into the stage that every warp left before the barrier
    if (moving && (step & 3) == 0) {
      weights[(step + 4 + warp) & 7].template fill<backward>(y, lane);
      load_chunk_gates(step + 8 + warp);
    }
    if (key_begin >= K) continue;

#pragma unroll
    for (int i = 0; i < value_groups; ++i) {
      if (i >= live_groups) break;
      float x[2][4];
      state.block(i, x);
      states.store(to + i * group_stride, shape, lane, x);
    }
    to += (backward ? -shape.heads : shape.heads) * all_groups;
    const char* stage = shared + (int(step) & (Stage::count - 1)) * Stage::bytes;
    const int of = fixed ? int(step == (backward ? 0 : chunks - 1)) : int(step) & 7;
    state.template advance<Gate, backward, typename Stage::KeyTile, typename Stage::ValueTile, Operand>(
        stage, stage + Stage::value_offset, 16 * warp, weights[of], scale, lane);
  }
  if (final_state != nullptr)
    state.for_each(lane, [&](float& s, int value, int key) {
      value += value_begin, key += key_begin;
      if (key < K && value < V) final_state[(state_base + key) * V + value] = s;
    });
}
