// gla.chunk, first kernel: the state at every chunk's start, S <- diag(e^L) S + sum_j (k_j e^{L - G_j})
// v_j^T, one chunk of 64 tokens after the other. A block owns one sequence and head, 64 key channels (16 per
// warp) and `columns` value channels; the transposed state stays in registers as accumulators v x k, whose
// layout is the one in which the output kernel multiplies with it.
#pragma once
#include "../gated/decay.cuh"
#include "../gated/shape.cuh"
#include "../gated/tile.cuh"

template <class Format, class Gate, int columns>
struct StateStage {
  using Operand = typename OperandOf<Format>::Type;
  using KeyTile = Tile<Format, 64>;
  using GateTile = Tile<Gate, 64>;
  using ValueTile = Tile<Format, columns>;
  static constexpr int gate_offset = KeyTile::bytes, value_offset = gate_offset + GateTile::bytes;
  static constexpr int bytes = value_offset + ValueTile::bytes;
  static constexpr int count =
      3 * bytes <= 75776 ? 3 : 2;  // 74 KiB: three blocks on a multiprocessor of sm_90
};

// One warp's 16 key channels of a chunk: lane holds channels 2 (lane/4) + {0, 1} of the 16 tokens from 16
// (lane%4) on.
template <class GateTile, class Gate>
struct ChunkDecays {
  float y[2][16];  // gates in log2 units
  float after[2];  // sum over the tokens of later quarters
  float total[2];  // sum over the chunk

  __device__ void load(const char* tile, int channel, int lane) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const auto pair =
          *reinterpret_cast<const Pair<Gate>*>(tile + GateTile::offset(16 * (lane & 3) + i, channel));
      y[0][i] = pair.low() * log2_e;
      y[1][i] = pair.high() * log2_e;
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float quarter = (sum_of_four(c, 0) + sum_of_four(c, 1)) + (sum_of_four(c, 2) + sum_of_four(c, 3));
      const float neighbour = __shfl_xor_sync(0xffffffffu, quarter, 1);
      const float half = quarter + neighbour;
      const float other_half = __shfl_xor_sync(0xffffffffu, half, 2);
      after[c] = ((lane & 1) ? 0.0f : neighbour) + ((lane & 2) ? 0.0f : other_half);
      total[c] = half + other_half;
    }
  }
  __device__ float sum_of_four(int c, int group) const {
    const float* x = y[c] + 4 * group;
    return (x[0] + x[1]) + (x[2] + x[3]);
  }
  // Log decays from four tokens to the chunk's end: the later tokens of their group, quarter and chunk. At
  // most 8 additions deep.
  __device__ void to_end(int c, int group, float (&exponent)[4]) const {
    float later = after[c];
    if (group == 2) later = sum_of_four(c, 3) + later;
    if (group == 1) later = (sum_of_four(c, 2) + sum_of_four(c, 3)) + later;
    if (group == 0) later = (sum_of_four(c, 1) + (sum_of_four(c, 2) + sum_of_four(c, 3))) + later;
    const float* x = y[c] + 4 * group;
    const float last_two = x[2] + x[3];
    exponent[3] = later;
    exponent[2] = x[3] + later;
    exponent[1] = last_two + later;
    exponent[0] = (x[1] + last_two) + later;
  }
};

template <class Format, class Gate, int columns>
__device__ __forceinline__ void chunk_state(const typename Format::Bits* k, const typename Format::Bits* v,
                                            const typename Gate::Bits* g, const float* initial_state,
                                            float* final_state, char* states, const i64* sequences,
                                            Shape shape) {
  using Stage = StateStage<Format, Gate, columns>;
  using Operand = typename Stage::Operand;
  constexpr int value_groups = columns / 16;
  extern __shared__ __align__(16) char shared[];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5, quarter = lane & 3, row = lane >> 2;
  const int K = shape.key_channels, V = shape.value_channels;
  const int key_blocks = (K + 63) / 64, value_blocks = (V + columns - 1) / columns;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * columns;
  block /= value_blocks;
  const int key_begin = block % key_blocks * 64;
  block /= key_blocks;
  const int head = block % shape.heads, sequence = block / shape.heads;
  const i64 first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1],
            slot = sequences[3 * sequence + 2];
  const i64 chunks = (tokens + 63) / 64;
  const int key_group = (key_begin >> 4) + warp, channel = 16 * key_group + 4 * quarter;
  const i64 state_base = (i64(sequence) * shape.heads + head) * K;

  Accumulator S[value_groups][2];  // [.][p].r[2 i + h]: value 16 [.] + row + 8 i, key channel + 2 h + p
#pragma unroll
  for (int i = 0; i < value_groups * 8; ++i) {
    const int value = value_begin + (i >> 3) * 16 + row + 8 * ((i >> 1) & 1),
              key = channel + 2 * (i & 1) + ((i >> 2) & 1);
    const bool live = initial_state != nullptr && key < K && value < V;
    S[i >> 3][(i >> 2) & 1].r[i & 3] = live ? initial_state[(state_base + key) * V + value] : 0.0f;
  }

  const auto load_stage = [&](i64 chunk) {
    if (chunk < chunks) {
      char* stage = shared + int(chunk % Stage::count) * Stage::bytes;
      const int rows = int(min(i64(64), tokens - 64 * chunk));
      const i64 at = (first + 64 * chunk) * shape.heads + head;
      const i64 key_stride = i64(shape.heads) * K, value_stride = i64(shape.heads) * V;
      load_tile<typename Stage::KeyTile, 128>(stage, k + at * K + key_begin, key_stride, rows, K - key_begin,
                                              shape.vector);
      if (g != nullptr)
        load_tile<typename Stage::GateTile, 128>(stage + Stage::gate_offset, g + at * K + key_begin,
                                                 key_stride, rows, K - key_begin, shape.vector);
      load_tile<typename Stage::ValueTile, 128>(stage + Stage::value_offset, v + at * V + value_begin,
                                                value_stride, rows, V - value_begin, shape.vector);
    }
    commit_copies();
  };
  if (g == nullptr)  // an absent gate is a zero gate: the gate tiles are cleared once and never loaded
    for (int i = int(threadIdx.x); i < Stage::count * Stage::GateTile::bytes / 4; i += 128) {
      const int stage = i / (Stage::GateTile::bytes / 4), word = i % (Stage::GateTile::bytes / 4);
      reinterpret_cast<u32*>(shared + stage * Stage::bytes + Stage::gate_offset)[word] = 0;
    }
#pragma unroll 1
  for (int stage = 0; stage < Stage::count - 1; ++stage) load_stage(stage);

  for (i64 chunk = 0; chunk < chunks; ++chunk) {
    wait_copies<Stage::count - 2>();
    __syncthreads();
    load_stage(chunk + Stage::count - 1);  // into the stage that every warp left before the barrier
    if (key_group >= shape.key_groups()) continue;

    char* to = states +
               (((slot + chunk) * shape.heads + head) * shape.value_groups() + (value_begin >> 4)) *
                   shape.key_groups() * Operand::block_bytes +
               i64(key_group) * Operand::block_bytes;
#pragma unroll
    for (int i = 0; i < value_groups; ++i) {
      if ((value_begin >> 4) + i >= shape.value_groups()) break;
      const float x[2][4] = {{S[i][0].r[0], S[i][1].r[0], S[i][0].r[1], S[i][1].r[1]},
                             {S[i][0].r[2], S[i][1].r[2], S[i][0].r[3], S[i][1].r[3]}};
      Operand::store_values(to + i64(i) * shape.key_groups() * Operand::block_bytes, lane, x);
    }

    const char* stage = shared + int(chunk % Stage::count) * Stage::bytes;
    const int local = 16 * warp + 2 * row;  // the lane's two key channels in the tile
    ChunkDecays<typename Stage::GateTile, Gate> decays;
    decays.load(stage + Stage::gate_offset, local, lane);
    Accumulator sum[value_groups][2];
#pragma unroll
    for (int i = 0; i < value_groups; ++i) sum[i][0].clear(), sum[i][1].clear();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      float x[2][4], exponent[2][4];
      decays.to_end(0, step, exponent[0]);
      decays.to_end(1, step, exponent[1]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int place = (i >> 1) | ((i & 1) << 1);  // tokens 0..3 stand at places 0, 2, 1, 3
        const auto pair = *reinterpret_cast<const Pair<Format>*>(
            stage + Stage::KeyTile::offset(16 * quarter + 4 * step + i, local));
        x[0][place] = pair.low() * power_of_two(exponent[0][i]);
        x[1][place] = pair.high() * power_of_two(exponent[1][i]);
      }
      const Operand keys = Operand::of(x);
#pragma unroll
      for (int i = 0; i < value_groups; ++i) {
        Operand values;
        load_columns<typename Stage::ValueTile>(values, stage + Stage::value_offset, 16 * i,
                                                QuarterTokens{step}, lane);
        multiply(sum[i][0], values, keys, 0);
        multiply(sum[i][1], values, keys, 1);
      }
    }
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const StateDecay own = StateDecay::of(decays.total[p]);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float keep = __shfl_sync(0xffffffffu, own.keep, 8 * quarter + 4 * h);
        const float factor = __shfl_sync(0xffffffffu, own.factor, 8 * quarter + 4 * h);
#pragma unroll
        for (int i = 0; i < value_groups * 2; ++i) {
          float& s = S[i >> 1][p].r[2 * (i & 1) + h];
          s = fused(keep, s, fused(factor, s, sum[i >> 1][p].r[2 * (i & 1) + h]));
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < value_groups * 8; ++i) {
    const int value = value_begin + (i >> 3) * 16 + row + 8 * ((i >> 1) & 1),
              key = channel + 2 * (i & 1) + ((i >> 2) & 1);
    if (key < K && value < V) final_state[(state_base + key) * V + value] = S[i >> 3][(i >> 2) & 1].r[i & 3];
  }
}
