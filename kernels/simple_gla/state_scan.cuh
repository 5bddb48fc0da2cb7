// First kernel of the chunked form: the state at every chunk's start,
//   S <- e^L S + sum_j (k_j e^{L - G_j}) v_j^T,
// one chunk of 64 tokens after the other. A block owns one sequence and head, 64 key channels (16 per warp)
// and `columns` value channels; the transposed state stays in registers as accumulators v x k, whose layout
// is the one in which the output kernel multiplies with it.
#pragma once
#include "../gated/shape.cuh"
#include "rows.cuh"
#include "token_decay.cuh"

template <class Format, int columns>
struct ScanStage {
  using KeyTile = Tile<Format, 64>;
  using ValueTile = Tile<Format, columns>;
  static constexpr int value_offset = KeyTile::bytes, bytes = value_offset + ValueTile::bytes;
  static constexpr int count = 4 * bytes <= 75776 ? 4 : 2;
};

// What a chunk's decays mean for its state: the weight of each token at the chunk's end, and of the old
// state.
struct ChunkWeights {
  float to_end[64];
  StateDecay state;

  // By one whole warp: lane holds the gates of tokens lane and lane + 32, 0 beyond the chunk's end.
  __device__ void fill(const float (&y)[2], int lane) {
    TokenSums sums(y);
#pragma unroll
    for (int l = 0; l < 5; ++l) sums.double_block(l, lane);
    sums.join_halves();
#pragma unroll
    for (int half = 0; half < 2; ++half) to_end[lane + 32 * half] = power_of_two(sums.after[half]);
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
  // S <- keep S + (factor S + dS), dS = sum over the chunk's tokens of (weight k) v.
  template <class Gate, class KeyTile, class ValueTile, class Operand>
  __device__ __forceinline__ void advance(const char* keys, const char* values, int key_column,
                                          const ChunkWeights& weights, int lane) {
    Accumulator sum[value_groups][2];
#pragma unroll
    for (int i = 0; i < value_groups; ++i) sum[i][0].clear(), sum[i][1].clear();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      Operand k;
      if constexpr (has_decay<Gate>)
        load_scaled_columns<KeyTile>(k, keys, key_column, 16 * step, weights.to_end, lane);
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
      const float dS = sum[i >> 3][(i >> 2) & 1].r[i & 3];
      s = has_decay<Gate> ? fused(decay.keep, s, fused(decay.factor, s, dS)) : s + dS;
    }
  }
};

template <class Format, class Gate, int columns>
__device__ __forceinline__ void state_scan(const typename Format::Bits* k, const typename Format::Bits* v,
                                           const typename Gate::Bits* gates, const float* initial_state,
                                           float* final_state, char* states, const i64* sequences,
                                           Shape shape) {
  using Stage = ScanStage<Format, columns>;
  using Operand = typename OperandOf<Format>::Type;
  constexpr int value_groups = columns / 16;
  extern __shared__ __align__(16) char shared[];
  __shared__ ChunkWeights weights[2];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int K = shape.key_channels, V = shape.value_channels;
  const int key_blocks = (K + 63) / 64, value_blocks = (V + columns - 1) / columns;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * columns;
  block /= value_blocks;
  const int key_begin = block % key_blocks * 64 + 16 * warp;
  const int block_key = block % key_blocks * 64;
  block /= key_blocks;
  const int head = block % shape.heads, sequence = block / shape.heads;
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

  const auto load_stage = [&](i64 chunk) {
    if (chunk < chunks) {
      char* stage = shared + int(chunk % Stage::count) * Stage::bytes;
      const int rows = int(min(i64(64), tokens - 64 * chunk));
      const i64 at = (first + 64 * chunk) * shape.heads + head;
      load_tile<typename Stage::KeyTile, 128>(stage, k + at * K + block_key, i64(shape.heads) * K, rows,
                                              K - block_key, shape.vector);
      load_tile<typename Stage::ValueTile, 128>(stage + Stage::value_offset, v + at * V + value_begin,
                                                i64(shape.heads) * V, rows, V - value_begin, shape.vector);
    }
    commit_copies();
  };
#pragma unroll 1
  for (int stage = 0; stage < Stage::count - 1; ++stage) load_stage(stage);

  // Warp 0 makes the weights of a chunk while the chunk before is used, from gates loaded one chunk earlier.
  float y[2] = {0.0f, 0.0f};
  if (has_decay<Gate> && warp == 0) {
    load_gates<Gate>(y, gates, first, tokens, head, shape.heads, lane);
    weights[0].fill(y, lane);
    load_gates<Gate>(y, gates, first + 64, tokens - 64, head, shape.heads, lane);
  }
  for (i64 chunk = 0; chunk < chunks; ++chunk) {
    wait_copies<Stage::count - 2>();
    __syncthreads();
    load_stage(chunk + Stage::count - 1);  // into the stage that every warp left before the barrier
    if (has_decay<Gate> && warp == 0) {
      weights[(chunk + 1) & 1].fill(y, lane);
      load_gates<Gate>(y, gates, first + 64 * (chunk + 2), tokens - 64 * (chunk + 2), head, shape.heads,
                       lane);
    }
    if (key_begin >= K) continue;

    char* to = states +
               (((slot + chunk) * shape.heads + head) * shape.value_groups() + (value_begin >> 4)) *
                   shape.key_groups() * Operand::block_bytes +
               i64(key_begin >> 4) * Operand::block_bytes;
#pragma unroll
    for (int i = 0; i < value_groups; ++i) {
      if ((value_begin >> 4) + i >= shape.value_groups()) break;
      float x[2][4];
      state.block(i, x);
      Operand::store_values(to + i64(i) * shape.key_groups() * Operand::block_bytes, lane, x);
    }
    const char* stage = shared + int(chunk % Stage::count) * Stage::bytes;
    state.template advance<Gate, typename Stage::KeyTile, typename Stage::ValueTile, Operand>(
        stage, stage + Stage::value_offset, 16 * warp, weights[chunk & 1], lane);
  }
  state.for_each(lane, [&](float& s, int value, int key) {
    value += value_begin, key += key_begin;
    if (key < K && value < V) final_state[(state_base + key) * V + value] = s;
  });
}
