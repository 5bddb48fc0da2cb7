// Chunked, a decay per key channel (gla, rwkv6, gsa; letters are gla's), first kernel: the state at every
// chunk's start, S <- diag(e^L) S + sum_j (k_j e^{L - G_j}) v_j^T, one chunk of 64 tokens after the other.
// Backward the last chunk comes first, with q for k, do for v and scale times their sum: the gradient of S at
// every chunk's end (pass.cuh). A block owns a sequence and head, 64 key channels (16 per warp) and `columns`
// value channels; S^T stays in registers as accumulators v x k, laid out as the output kernel multiplies it.
#pragma once
#include "../device/decay.cuh"
#include "../device/shape.cuh"
#include "../device/states.cuh"
#include "../device/tile_stream.cuh"
#include "chunk_layout.h"
#include "pass.cuh"

template <class Format, class Gate, int columns, class Key, int blocks>
struct StateStage {
  using Element = Key;
  using Operand = typename OperandOf<Format>::Type;
  using KeyTile = Tile<Key, 64>;
  using GateTile = Tile<Gate, 64>;
  using ValueTile = Tile<Format, columns>;
  static constexpr assay::channel::StateStageLayout layout{
      int(sizeof(typename Key::Bits)), int(sizeof(typename Gate::Bits)), int(sizeof(typename Format::Bits)),
      columns, blocks};
  static constexpr int gate_offset = layout.gate_offset, value_offset = layout.value_offset,
                       bytes = layout.bytes, count = layout.count;
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
  // Log decays from four tokens to the chunk's end: the later tokens of their group, quarter and chunk,
  // themselves too where sources decay. At most 8 additions deep.
  template <class Pass>
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
    if constexpr (Pass::source_decays) {
      exponent[3] = x[3] + later;
      exponent[2] = last_two + later;
      exponent[1] = (x[1] + last_two) + later;
      exponent[0] = ((x[0] + x[1]) + last_two) + later;
    }
  }
};

// The transposed state of a warp's 16 key channels and some groups of 16 value channels. S[.][p].r[2 i + h]
// is value 16 [.] + lane/4 + 8 i, key channel 4 (lane%4) + 2 h + p.
template <int value_groups>
struct ChannelState {
  Accumulator S[value_groups][2];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < value_groups; ++i) S[i][0].clear(), S[i][1].clear();
  }
  template <class Visit>  // visit(element, value, key), both within the groups
  __device__ __forceinline__ void for_each(int lane, Visit visit) {
#pragma unroll
    for (int i = 0; i < value_groups * 8; ++i)
      visit(S[i >> 3][(i >> 2) & 1].r[i & 3], (i >> 3) * 16 + (lane >> 2) + 8 * ((i >> 1) & 1),
            4 * (lane & 3) + 2 * (i & 1) + ((i >> 2) & 1));
  }
  // 16 value channels as rows of an operand, the lane's four key channels as places.
  __device__ __forceinline__ void block(int i, float (&x)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      x[half][0] = S[i][0].r[2 * half], x[half][1] = S[i][1].r[2 * half];
      x[half][2] = S[i][0].r[2 * half + 1], x[half][3] = S[i][1].r[2 * half + 1];
    }
  }

  // S <- diag(e^L) S + sum_j (k_j e^{L - G_j}) v_j^T (backward: times scale) for one chunk. Tiles holds the
  // types of k, g and v in shared memory; the warp's key channels are the tiles' columns 16 `warp` to 16
  // `warp` + 15.
  template <class Pass, class Tiles, class Gate>
  __device__ __forceinline__ void advance(const char* keys, const char* gates, const char* values,
                                          float scale, int warp, int lane) {
    using Operand = typename Tiles::Operand;
    using Format = typename Tiles::Element;
    const int quarter = lane & 3, local = 16 * warp + 2 * (lane >> 2);  // the lane's two key channels
    ChunkDecays<typename Tiles::GateTile, Gate> decays;
    decays.load(gates, local, lane);
    Accumulator sum[value_groups][2];
#pragma unroll
    for (int i = 0; i < value_groups; ++i) sum[i][0].clear(), sum[i][1].clear();
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      float x[2][4], exponent[2][4];
      decays.template to_end<Pass>(0, part, exponent[0]);
      decays.template to_end<Pass>(1, part, exponent[1]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int place = (i >> 1) | ((i & 1) << 1);  // tokens 0..3 stand at places 0, 2, 1, 3
        const int token = 16 * quarter + 4 * part + i;
        const auto pair = *reinterpret_cast<const Pair<Format>*>(keys + Tiles::KeyTile::offset(token, local));
        x[0][place] = pair.low() * power_of_two(exponent[0][i]);
        x[1][place] = pair.high() * power_of_two(exponent[1][i]);
      }
      const Operand operand = Operand::of(x);
#pragma unroll
      for (int i = 0; i < value_groups; ++i) {
        Operand v;
        load_columns<typename Tiles::ValueTile>(v, values, 16 * i, QuarterTokens{part}, lane);
        multiply(sum[i][0], v, operand, 0);
        multiply(sum[i][1], v, operand, 1);
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
          const float added = sum[i >> 1][p].r[2 * (i & 1) + h];
          s = fused(keep, s, fused(factor, s, Pass::backward ? added * scale : added));
        }
      }
    }
  }
};

// `States`: one of ../device/states.cuh, of this scan's keys. `Key`: format of k. `turned`: initial and final
// states are [N, H, V, K]. `blocks`: as in StateStageLayout.
template <class Format, class Gate, int columns, class Pass, class Key = Format, int blocks = 3, class States>
__device__ __forceinline__ void chunk_state(const typename Key::Bits* k, const typename Format::Bits* v,
                                            const typename Gate::Bits* g, const float* initial_state,
                                            float* final_state, States states, const i64* sequences,
                                            float scale, Shape shape, bool turned = false) {
  using Stage = StateStage<Format, Gate, columns, Key, blocks>;
  constexpr int value_groups = columns / 16;
  extern __shared__ __align__(16) char shared[];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
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
  const int key_group = (key_begin >> 4) + warp;
  const i64 state_base = (i64(sequence) * shape.heads + head) * K * V;
  const auto place = [&](int value, int key) {
    return state_base + (turned ? i64(value) * K + key : i64(key) * V + value);
  };

  ChannelState<value_groups> state;
  state.for_each(lane, [&](float& s, int value, int key) {
    value += value_begin, key += 16 * key_group;
    const bool live = initial_state != nullptr && key < K && value < V;
    s = live ? initial_state[place(value, key)] : 0.0f;
  });

  const int last_rows = int(tokens - 64 * (chunks - 1));
  const i64 at = ChunkRows<Pass>::first_token(first + (Pass::backward ? 64 * (chunks - 1) : 0), 64) *
                     shape.heads +
                 head,
            key_stride = ChunkRows<Pass>::stride(i64(shape.heads) * K),
            value_stride = ChunkRows<Pass>::stride(i64(shape.heads) * V);
  TileStream<typename Stage::KeyTile, 128> key_tiles(k + at * K + key_begin, key_stride, 64 * key_stride,
                                                     K - key_begin, shape.vector);
  TileStream<typename Stage::GateTile, 128> gate_tiles(g + at * K + key_begin, key_stride, 64 * key_stride,
                                                       K - key_begin, shape.vector);
  TileStream<typename Stage::ValueTile, 128> value_tiles(v + at * V + value_begin, value_stride,
                                                         64 * value_stride, V - value_begin, shape.vector);
  const auto load_stage = [&](i64 step, char* stage) {
    if (step < chunks) {
      const int rows = step == (Pass::backward ? 0 : chunks - 1) ? last_rows : 64,
                missing = Pass::backward ? 64 - rows : 0;
      key_tiles.load(stage, rows, missing);
      if (g != nullptr) gate_tiles.load(stage + Stage::gate_offset, rows, missing);
      value_tiles.load(stage + Stage::value_offset, rows, missing);
    }
    commit_copies();
  };
  if (g == nullptr)  // an absent gate is a zero gate: the gate tiles are cleared once and never loaded
#pragma unroll 1
    for (int i = int(threadIdx.x); i < Stage::count * Stage::GateTile::bytes / 4; i += 128) {
      const int stage = i / (Stage::GateTile::bytes / 4), word = i % (Stage::GateTile::bytes / 4);
      reinterpret_cast<u32*>(shared + stage * Stage::bytes + Stage::gate_offset)[word] = 0;
    }
#pragma unroll 1
  for (int stage = 0; stage < Stage::count - 1; ++stage) load_stage(stage, shared + stage * Stage::bytes);

  char *stage = shared, *left = shared + (Stage::count - 1) * Stage::bytes;
  for (i64 step = 0; step < chunks; ++step) {
    wait_copies<Stage::count - 2>();
    __syncthreads();
    load_stage(step + Stage::count - 1, left);  // into the stage that every warp left before the barrier
    left = stage;
    const char* tiles = stage;
    stage = stage == shared + (Stage::count - 1) * Stage::bytes ? shared : stage + Stage::bytes;
    if (key_group >= shape.key_groups()) continue;

    const i64 chunk = Pass::backward ? chunks - 1 - step : step;
#pragma unroll
    for (int i = 0; i < value_groups; ++i) {
      if ((value_begin >> 4) + i >= shape.value_groups()) break;
      float x[2][4];
      state.block(i, x);
      states.store((slot + chunk) * shape.heads + head, (value_begin >> 4) + i, key_group, shape, lane, x);
    }
    state.template advance<Pass, Stage, Gate>(tiles, tiles + Stage::gate_offset, tiles + Stage::value_offset,
                                              scale, warp, lane);
  }
  state.for_each(lane, [&](float s, int value, int key) {
    value += value_begin, key += 16 * key_group;
    if (final_state != nullptr && key < K && value < V) final_state[place(value, key)] = s;
  });
}
