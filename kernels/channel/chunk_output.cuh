// After chunk_state.cuh (gla, rwkv6, gsa): o_i = scale (sum_c q_ic e^{G_ic} S_c + sum_{j<=i} A_ij v_j). A
// block owns a chunk of 64 tokens and a head; each of its 4 warps 16 tokens, first scores (chunk_scores.cuh),
// then their outputs, 64 value channels at a time. Backward the same with k for q, q for k, do for v and the
// gradient of the state at the chunk's end gives dv; that gradient has the scale already, scores get it here.
#pragma once
#include "chunk_scores.cuh"

template <class Format>
struct OutputShared {
  using Operand = typename OperandOf<Format>::Type;
  using ValueTile = Tile<Format, 64>;
  static constexpr bool early = assay::channel::OutputLayout::is_early(sizes_of_format<Format>);
  static constexpr int state_bytes = 16 * Operand::block_bytes;  // [value group of 4][key group of 4]
  static constexpr int stage_bytes = assay::channel::OutputLayout::stage_bytes(sizes_of_format<Format>);
  static_assert(stage_bytes == state_bytes + ValueTile::bytes);
  int stage_offset, stages;
  Exchange<Operand> exchange;

  __device__ OutputShared(char* shared, const assay::channel::ExchangeLayout& layout, int steps, int warp)
      : exchange(shared, layout, warp) {
    constexpr assay::device::FormatSizes sizes = sizes_of_format<Format>;
    const assay::channel::OutputLayout stages_layout(sizes, layout, steps);
    stage_offset = stages_layout.stage_offset, stages = stages_layout.stages;
  }
};

// A warp's outputs: 16 tokens x some groups of 16 value channels.
template <class Operand, int value_groups>
struct OutputTile {
  Accumulator out[value_groups][2];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < value_groups; ++i) out[i][0].clear(), out[i][1].clear();
  }
  static __device__ __forceinline__ void multiply_both(Accumulator (&c)[2], const Operand& a,
                                                       const Operand& b) {
    multiply(c[0], a, b, 0);
    multiply(c[1], a, b, 1);
  }
  // out += (q e^G) S over `groups` (at most 4) groups of key channels; state: [value group][key group of 4].
  __device__ __forceinline__ void add_state(const char* queries, const char* state, int groups,
                                            int live_groups, int lane) {
    if (groups == 4 && live_groups >= value_groups) {  // the same without a branch
#pragma unroll
      for (int group = 0; group < 4; ++group) {
        const Operand q = Operand::load(queries + group * Exchange<Operand>::query_bytes, lane);
#pragma unroll
        for (int i = 0; i < value_groups; ++i)
          multiply_both(out[i], q,
                        Operand::load_second(state + (i * 4 + group) * Operand::block_bytes, lane));
      }
      return;
    }
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      const Operand q = Operand::load(queries + group * Exchange<Operand>::query_bytes, lane);
#pragma unroll
      for (int i = 0; i < value_groups; ++i)
        if (i < live_groups)
          multiply_both(out[i], q,
                        Operand::load_second(state + (i * 4 + group) * Operand::block_bytes, lane));
    }
  }
  // out += scores v for value group i; a[d]: scores with the tile d before.
  template <class ValueTile>
  __device__ __forceinline__ void add_scores(int i, const Operand (&a)[4], const char* values, int warp,
                                             int lane) {
#pragma unroll
    for (int d = 3; d >= 0; --d)
      if (d <= warp) {
        Operand b;
        load_columns<ValueTile, true>(b, values, 16 * i, NaturalTokens{16 * (warp - d)}, lane);
        multiply_both(out[i], a[d], b);
      }
  }
  // Of all value groups, `live_groups` of them there.
  template <class ValueTile>
  __device__ __forceinline__ void add_scores(const Operand (&a)[4], const char* values, int live_groups,
                                             int warp, int lane) {
    if (live_groups >= value_groups) {
#pragma unroll
      for (int d = 3; d >= 0; --d)
        if (d <= warp)
#pragma unroll
          for (int i = 0; i < value_groups; ++i) {
            Operand b;
            load_columns<ValueTile, true>(b, values, 16 * i, NaturalTokens{16 * (warp - d)}, lane);
            multiply_both(out[i], a[d], b);
          }
    } else {
#pragma unroll
      for (int i = 0; i < value_groups; ++i)
        if (i < live_groups) add_scores<ValueTile>(i, a, values, warp, lane);
    }
  }
  // Times `factor` to o: value channels from `value` on of the warp's first token.
  template <class Format>
  __device__ __forceinline__ void store(int i, typename Format::Bits* o, i64 row_stride, int value_begin,
                                        int live_rows, float factor, const Shape& shape, int lane) const {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int half = part & 1, row = (lane >> 2) + 8 * half,
                value = value_begin + 8 * (part >> 1) + 2 * (lane & 3);
      if (row < live_rows && value < shape.value_channels)
        store_pair<Format>(o + row * row_stride + value, out[i][part >> 1].r[2 * half] * factor,
                           out[i][part >> 1].r[2 * half + 1] * factor, shape.value_channels - value,
                           shape.vector);
    }
  }
  // All groups, rounded to bf16, 16 bytes at a time: by way of `stage`, row_bytes for each of 16 rows, in
  // which neither writers nor readers of a quarter warp hit a bank more than twice.
  static constexpr int row_bytes = 2 * 32 + 16;
  __device__ __forceinline__ void store_rows(char* stage, unsigned short* o, i64 row_stride, int value_begin,
                                             int live_rows, float factor, const Shape& shape,
                                             int lane) const {
    const int row = lane >> 2, piece = lane & 3;
    char* to = stage + row * row_bytes + 4 * piece;
    const char* from = stage + row * row_bytes + 16 * piece;
    unsigned short* at = o + row * row_stride + (value_begin + 8 * piece);
#pragma unroll
    for (int i = 0; i < value_groups; i += 2) {
#pragma unroll
      for (int part = 0; part < 8; ++part) {
        const Accumulator& x = out[i + (part >> 2)][(part >> 1) & 1];
        const int half = part & 1;
        *reinterpret_cast<u32*>(to + 8 * half * row_bytes + 16 * (part >> 1)) =
            to_bf16_pair(x.r[2 * half] * factor, x.r[2 * half + 1] * factor);
      }
      __syncwarp();
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (row + 8 * half < live_rows && value_begin + 16 * i + 8 * piece < shape.value_channels)
          *reinterpret_cast<uint4*>(at + 8 * half * row_stride + 16 * i) =
              *reinterpret_cast<const uint4*>(from + 8 * half * row_bytes);
      __syncwarp();
    }
  }
};

template <class Format, class Pass, bool one_block>
struct ChunkOutput {
  using Shared = OutputShared<Format>;
  using Operand = typename Shared::Operand;
  using Bits = typename Format::Bits;

  const Bits* v;       // chunk's first token, the head, value channel 0
  const char* states;  // the chunk's and head's
  Bits* o;             // warp's first token, the head, value channel 0
  float scale;
  Shape shape;
  int rows, live_rows;  // tokens of the chunk; of them from the warp's first on
  int warp, lane;

  __device__ i64 row_stride() const {
    return ChunkRows<Pass>::stride(i64(shape.heads) * shape.value_channels);
  }
  __device__ int key_steps() const { return one_block ? 1 : (shape.key_channels + 63) / 64; }
  __device__ int steps() const { return one_block ? 1 : key_steps() * ((shape.value_channels + 63) / 64); }

  // Starts loading what step `step` needs: 64 key channels x 64 value channels of the state, key channels
  // first; v with the last of them.
  __device__ __forceinline__ void load(char* stage, int step) const {
    if (step < steps()) load_stage(stage, step);
    commit_copies();  // an empty group where nothing is left, so that groups count steps
  }
  __device__ __forceinline__ void load_stage(char* stage, int step) const {
    const int key_group = step % key_steps() * 4, value_group = step / key_steps() * 4;
    const int run = min(4, shape.key_groups() - key_group) * Operand::block_bytes;
    const int value_groups = min(4, shape.value_groups() - value_group);
    const int stride = shape.key_groups() * Operand::block_bytes, byte = int(threadIdx.x) * 16;
    const char* from = states + (value_group * stride + key_group * Operand::block_bytes + byte);
    char* to = stage + byte;
#pragma unroll
    for (int i = 0; i < 4; ++i, from += stride, to += 4 * Operand::block_bytes)
#pragma unroll
      for (int piece = 0; piece < 4 * Operand::block_bytes; piece += 128 * 16)
        if (i < value_groups && byte + piece < run) copy_async(to + piece, from + piece, 16);
    if (key_group + 4 >= shape.key_groups())
      load_tile<typename Shared::ValueTile, 128>(stage + Shared::state_bytes, v + 16 * value_group,
                                                 row_stride(), rows, shape.value_channels - 16 * value_group,
                                                 shape.vector);
  }

  template <class Scores>
  __device__ __forceinline__ void outputs(const Scores& scores, const Shared& shared, char* base) const {
    Operand a[4];
    scores.operands(a, scale, warp, lane);
    if (!Shared::early) {
      __syncthreads();  // the stages take the keys' place
      load_ahead(shared, base);
    }
    OutputTile<Operand, 4> out;
#pragma unroll 1
    for (int step = 0; step < steps(); ++step) {
      if (shared.stages == 2)
        wait_copies<1>();
      else
        wait_copies<0>();
      __syncthreads();
      char* stage = base + shared.stage_offset + (shared.stages == 2 ? step & 1 : 0) * Shared::stage_bytes;
      if (live_rows > 0) one_step(a, out, shared, stage, step);
      if (step + shared.stages < steps()) __syncthreads();  // everyone is done with this stage
      load(stage, step + shared.stages);
    }
  }

  __device__ __forceinline__ void load_ahead(const Shared& shared, char* base) const {
    load(base + shared.stage_offset, 0);
    if (shared.stages == 2) load(base + shared.stage_offset + Shared::stage_bytes, 1);
  }

  __device__ __forceinline__ void one_step(const Operand (&a)[4], OutputTile<Operand, 4>& out,
                                           const Shared& shared, const char* stage, int step) const {
    const int key_group = step % key_steps() * 4, value_group = step / key_steps() * 4;
    const int value_groups = shape.value_groups() - value_group;
    if (key_group == 0) out.clear();
    out.add_state(shared.exchange.queries + key_group * Exchange<Operand>::query_bytes, stage,
                  min(4, shape.key_groups() - key_group), value_groups, lane);
    if (key_group + 4 < shape.key_groups()) return;
    const float factor = Pass::backward ? 1.0f : scale;
    out.template add_scores<typename Shared::ValueTile>(a, stage + Shared::state_bytes, value_groups, warp,
                                                        lane);
    if constexpr (Shared::early)  // the keys are used up
      if (shape.vector)
        return out.store_rows(shared.exchange.keys + warp * 16 * out.row_bytes, o, row_stride(),
                              16 * value_group, live_rows, factor, shape, lane);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (i < value_groups)
        out.template store<Format>(i, o, row_stride(), 16 * (value_group + i), live_rows, factor, shape,
                                   lane);
  }
};

// `u`: the bonus [H, K] of exclusive readouts, else null. `block`: of the chunks' and heads'. `Query`, `Key`:
// formats of q and k. `one_block`: K and V are at most 64.
template <class Format, class Gate, class Pass, class Query = Format, class Key = Format,
          bool one_block = false>
__device__ __forceinline__ void chunk_output(const typename Query::Bits* q, const typename Key::Bits* k,
                                             const typename Format::Bits* v, const typename Gate::Bits* g,
                                             const typename Format::Bits* u, const char* states,
                                             typename Format::Bits* o, const i64* chunks, float scale,
                                             Shape shape, int block = int(blockIdx.x)) {
  using Output = ChunkOutput<Format, Pass, one_block>;
  using Operand = typename Output::Operand;
  extern __shared__ __align__(16) char base[];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int head = block % shape.heads, chunk = block / shape.heads;
  const i64 first = chunks[2 * i64(chunk)];
  const int rows = int(chunks[2 * i64(chunk) + 1]), live_rows = rows - 16 * warp;
  const i64 token = ChunkRows<Pass>::first_token(first, rows) * shape.heads + head,
            warp_token = token + ChunkRows<Pass>::stride(i64(16 * warp) * shape.heads);
  const i64 state_blocks = i64(shape.value_groups()) * shape.key_groups();
  const Output output{v + token * shape.value_channels,
                      states + (i64(chunk) * shape.heads + head) * state_blocks * Operand::block_bytes,
                      o + warp_token * shape.value_channels,
                      scale,
                      shape,
                      rows,
                      live_rows,
                      warp,
                      lane};
  const assay::channel::ExchangeLayout layout(Operand::block_bytes, shape.key_groups());
  const OutputShared<Format> shared(base, layout, output.steps(), warp);
  const i64 at = warp_token * shape.key_channels,
            stride = ChunkRows<Pass>::stride(i64(shape.heads) * shape.key_channels);
  if constexpr (Pass::exclusive) u += i64(head) * shape.key_channels;
  Scores<Format, Gate, Pass, Query, Key> scores;
  scores.template run<one_block>({q + at, k + at, g == nullptr ? nullptr : g + at, u}, stride, live_rows,
                                 shared.exchange, shape, warp, lane, [&] {
                                   if (OutputShared<Format>::early) output.load_ahead(shared, base);
                                 });
  output.outputs(scores, shared, base);
}
