// Delta rules, one token after the other, by value channels: those of a state's columns depend on nothing but
// each other. A block owns one sequence and head and 32 columns. A lane holds key channels 4 (lane%4 + 4 i) +
// {0..3} of one column, so that a product with a vector of key channels is a sum over four lanes. Tokens pass
// through shared memory in batches; a batch is loaded into registers while the one before is computed.
#pragma once
#include "delta_layout.h"
#include "transition.cuh"

constexpr int block_columns = assay::delta::block_columns;

__device__ __forceinline__ float component(const float4& x, int i) {
  return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

// Sum over the four lanes of a column; all get it, with the same bits.
__device__ __forceinline__ float sum_of_column(float x) {
  x = x + __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// `steps` tokens: as they lie in memory, in registers, then decoded in shared memory.
template <class Transition, int channels>
struct ColumnBatch {
  using Format = typename Transition::Format;
  static constexpr int steps = channels > 128 ? 4 : 8;
  static constexpr int elements = steps * channels / 128, values = steps * block_columns / 128;

  struct Shared {
    float4 decays[steps][channels / 4], readers[steps][channels / 4], writers[steps][channels / 4],
        keys[steps][channels / 4], queries[steps][channels / 4];
    float values[steps][block_columns];
  };
  typename Transition::Raw factors[elements];
  typename Format::Bits queries[elements], columns[values];

  // Tokens [begin, begin + steps) of those there are; pointers: the sequence's first token, the head, for
  // `v` also the block's first column. `q` may be null.
  __device__ __forceinline__ void load(const typename Transition::Inputs& in, const typename Format::Bits* q,
                                       const typename Format::Bits* v, i64 begin, i64 tokens, int heads,
                                       int K, int V, int live_columns) {
    const i64 left = begin < 0 ? 0 : tokens - begin;
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int at = int(threadIdx.x) + 128 * i, step = at / channels, key = at % channels;
      const bool live = step < left && key < K;
      const i64 from = (begin + step) * heads * K + key;
      factors[i] = Transition::load(in, from, live);
      queries[i] = live && q != nullptr ? q[from] : typename Format::Bits(0);
    }
#pragma unroll
    for (int i = 0; i < values; ++i) {
      const int at = int(threadIdx.x) + 128 * i, step = at / block_columns, column = at % block_columns;
      const bool live = step < left && column < live_columns;
      columns[i] = live ? v[(begin + step) * heads * V + column] : typename Format::Bits(0);
    }
  }
  __device__ __forceinline__ void decode(Shared& to, float scale) const {
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int at = int(threadIdx.x) + 128 * i;
      const StepFactors x = Transition::decode(factors[i]);
      reinterpret_cast<float*>(to.decays)[at] = x.decay;
      reinterpret_cast<float*>(to.readers)[at] = x.reader;
      reinterpret_cast<float*>(to.writers)[at] = x.writer;
      reinterpret_cast<float*>(to.keys)[at] = x.key;
      reinterpret_cast<float*>(to.queries)[at] = Format::decode(queries[i]) * scale;
    }
#pragma unroll
    for (int i = 0; i < values; ++i)
      reinterpret_cast<float*>(to.values)[int(threadIdx.x) + 128 * i] = Format::decode(columns[i]);
  }
};

// One column's place, and its state S (or G = dL/dS) in registers.
template <int channels>
struct Column {
  static constexpr int quads = channels / 16;
  int part, column, head, sequence, value;
  // All lanes of a column hold its sums; at step i the lane with turn = i % 4 stores them. A condition that
  // changes from step to step, so that no compiler takes it out of the loop and the lanes of a warp apart.
  int turn;
  i64 first, tokens, state;  // state: its first element
  float S[quads][4];

  __device__ __forceinline__ Column(const i64* sequences, int heads, int K, int V) {
    const int value_blocks = (V + block_columns - 1) / block_columns;
    int block = int(blockIdx.x);
    part = int(threadIdx.x) & 3, column = int(threadIdx.x) >> 2;
    value = block % value_blocks * block_columns + column;
    block /= value_blocks;
    head = block % heads, sequence = block / heads;
    turn = value < V ? part : -1;
    first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1];
    state = (i64(sequence) * heads + head) * K * V + value;
  }
  static __device__ __forceinline__ int key(int part, int i) { return 4 * (part + 4 * (i >> 2)) + (i & 3); }
  __device__ __forceinline__ void load(const float* from, int K, int V) {
#pragma unroll
    for (int i = 0; i < quads * 4; ++i) {
      const int c = key(part, i);
      S[i >> 2][i & 3] = from != nullptr && c < K && value < V ? from[state + i64(c) * V] : 0.0f;
    }
  }
  __device__ __forceinline__ void store(float* to, int K, int V) const {
#pragma unroll
    for (int i = 0; i < quads * 4; ++i) {
      const int c = key(part, i);
      if (c < K && value < V) to[state + i64(c) * V] = S[i >> 2][i & 3];
    }
  }
  // x^T S: four sums of fused additions, two additions, two more over the lanes.
  __device__ __forceinline__ float product(const float4* x) const {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      const float4 y = x[part + 4 * i];
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[c] = fused(component(y, c), S[i][c], sum[c]);
    }
    return sum_of_column((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
};

// S_t, and either outputs o_t = scale S_t^T q_t and the final state, or what was read: reads_t = reader_t^T
// S_{t-1}.
//   q [token, H, K]; v, o [token, H, V]; reads [token, H, V] fp32; states [N, H, K, V] fp32; what is not
//   asked for is null
template <class Transition, int channels, bool outputs>
__device__ __forceinline__ void scan_columns(typename Transition::Inputs in,
                                             const typename Transition::Format::Bits* q,
                                             const typename Transition::Format::Bits* v,
                                             const float* initial_state, typename Transition::Format::Bits* o,
                                             float* reads, float* final_state, const i64* sequences,
                                             float scale, int heads, int K, int V) {
  using Batch = ColumnBatch<Transition, channels>;
  __shared__ typename Batch::Shared batch;
  Column<channels> x(sequences, heads, K, V);
  x.load(initial_state, K, V);
  const i64 row = x.first * heads + x.head;
  const int first_value = x.value - x.column;
  in = in.from(row * K);
  if constexpr (outputs) q += row * K;
  v += row * V + first_value;

  Batch next;
  next.load(in, q, v, 0, x.tokens, heads, K, V, V - first_value);
#pragma unroll 1
  for (i64 begin = 0; begin < x.tokens; begin += Batch::steps) {
    next.decode(batch, 1.0f);
    __syncthreads();
    next.load(in, q, v, begin + Batch::steps, x.tokens, heads, K, V, V - first_value);
    const int count = int(min(i64(Batch::steps), x.tokens - begin));
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
      const float read = x.product(batch.readers[step]), value = batch.values[step][x.column];
#pragma unroll
      for (int i = 0; i < x.quads; ++i) {
        const int at = x.part + 4 * i;
        const float4 e = batch.decays[step][at], w = batch.writers[step][at], k = batch.keys[step][at];
#pragma unroll
        for (int c = 0; c < 4; ++c)
          x.S[i][c] =
              fused(component(e, c), x.S[i][c], fused(component(w, c), read, component(k, c) * value));
      }
      const i64 to = (row + (begin + step) * heads) * V + x.value;
      if constexpr (outputs) {
        const float sum = x.product(batch.queries[step]);
        if ((step & 3) == x.turn) o[to] = Transition::Format::encode(sum * scale);
      } else {
        if ((step & 3) == x.turn) reads[to] = read;
      }
    }
    __syncthreads();
  }
  if constexpr (outputs) x.store(final_state, K, V);
}

// Last token first: G_t = dL/dS_t, dv_t = G_t^T k_t, and what reached the reads: pulls_t = G_t^T writer_t.
//   G <- G + scale q_t do_t^T; dv_t, pulls_t; G <- diag(e_t) G + reader_t pulls_t^T
//   q [token, H, K]; do, dv [token, H, V]; pulls [token, H, V] fp32; dfinal_state [N, H, K, V] fp32
template <class Transition, int channels>
__device__ __forceinline__ void scan_columns_back(typename Transition::Inputs in,
                                                  const typename Transition::Format::Bits* q,
                                                  const typename Transition::Format::Bits* d_o,
                                                  const float* dfinal_state,
                                                  typename Transition::Format::Bits* dv, float* pulls,
                                                  const i64* sequences, float scale, int heads, int K,
                                                  int V) {
  using Batch = ColumnBatch<Transition, channels>;
  __shared__ typename Batch::Shared batch;
  Column<channels> x(sequences, heads, K, V);
  x.load(dfinal_state, K, V);
  const i64 row = x.first * heads + x.head;
  const int first_value = x.value - x.column;
  in = in.from(row * K);
  q += row * K, d_o += row * V + first_value;

  Batch next;
  const i64 last = (x.tokens - 1) / Batch::steps * Batch::steps;
  next.load(in, q, d_o, last, x.tokens, heads, K, V, V - first_value);
#pragma unroll 1
  for (i64 begin = last; begin >= 0 && x.tokens > 0; begin -= Batch::steps) {
    next.decode(batch, scale);
    __syncthreads();
    next.load(in, q, d_o, begin - Batch::steps, x.tokens, heads, K, V, V - first_value);
#pragma unroll 1
    for (int step = int(min(i64(Batch::steps), x.tokens - begin)) - 1; step >= 0; --step) {
      const float value = batch.values[step][x.column];
#pragma unroll
      for (int i = 0; i < x.quads; ++i) {
        const float4 r = batch.queries[step][x.part + 4 * i];
#pragma unroll
        for (int c = 0; c < 4; ++c) x.S[i][c] = fused(component(r, c), value, x.S[i][c]);
      }
      const float dv_t = x.product(batch.keys[step]), pull = x.product(batch.writers[step]);
#pragma unroll
      for (int i = 0; i < x.quads; ++i) {
        const float4 e = batch.decays[step][x.part + 4 * i], a = batch.readers[step][x.part + 4 * i];
#pragma unroll
        for (int c = 0; c < 4; ++c) x.S[i][c] = fused(component(e, c), x.S[i][c], component(a, c) * pull);
      }
      if ((step & 3) != x.turn) continue;
      const i64 to = (row + (begin + step) * heads) * V + x.value;
      dv[to] = Transition::Format::encode(dv_t);
      pulls[to] = pull;
    }
    __syncthreads();
  }
}
