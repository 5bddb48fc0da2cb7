// The recurrence, one token after the other, the state in registers, fp32 throughout:
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T
//   inclusive: o_t = scale S_t^T q_t          exclusive: o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T q_t
// A block owns one sequence and head and 32 value channels. A lane holds key channels 4 (lane%4 + 4 i) +
// {0..3} of one value channel; a warp has 8 value channels. Tokens pass through shared memory in batches; a
// batch is loaded into registers while the one before is computed.
#pragma once
#include "decay.cuh"
#include "gate.cuh"
#include "scan_layout.h"

__device__ __forceinline__ float component(const float4& x, int i) {
  return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

// One sequence and head. `Query` is the format of q, `Format` that of k and v.
template <class Format, class Gate, class Query>
struct RecurrentInputs {
  const typename Query::Bits* q;
  const typename Format::Bits *k, *v;  // the sequence's first token, the head; v: the block's first channel
  const typename Gate::Bits* gates;    // of the first token and the head; HeadGate: the head's
  bool has_gates;                      // of channels: else none decays
  i64 tokens;
  int heads, K, V, live_values;  // V: distance of tokens in v; live_values: of the block's 32
};

// `steps` tokens: as they lie in memory, in registers, then decoded in shared memory.
template <class Format, class Gate, int channels, class Query>
struct RecurrentBatch {
  static constexpr int steps = channels > 64 ? 8 : 16, columns = assay::device::scan_columns;
  static constexpr int elements = steps * channels / 128, values = steps * columns / 128;
  static constexpr bool by_channel = Gate::width == GateWidth::channel,
                        by_token = Gate::width == GateWidth::token;
  using Inputs = RecurrentInputs<Format, Gate, Query>;

  struct Shared {
    float4 queries[steps][channels / 4], keys[steps][channels / 4];
    float4 decays[by_channel ? steps : 1][channels / 4];
    float token_decays[by_token ? steps : 1];
    float values[steps][columns];
  };

  typename Query::Bits q[elements];
  typename Format::Bits k[elements], v[values];
  typename Gate::Bits g[by_channel ? elements : 1];

  __device__ __forceinline__ void load(const Inputs& in, i64 begin) {
    const i64 left = in.tokens - begin;
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const unsigned at = threadIdx.x + 128 * i;
      const int step = int(at / channels), key = int(at % channels);
      const bool live = step < left && key < in.K;
      const i64 from = (begin + step) * in.heads * in.K + key;
      q[i] = live ? in.q[from] : typename Query::Bits(0);
      k[i] = live ? in.k[from] : typename Format::Bits(0);
      if constexpr (by_channel) g[i] = live && in.has_gates ? in.gates[from] : typename Gate::Bits(0);
    }
    if constexpr (by_token) {
      const int step = int(threadIdx.x);
      g[0] = step < steps && step < left ? in.gates[(begin + step) * in.heads] : typename Gate::Bits(0);
    }
#pragma unroll
    for (int i = 0; i < values; ++i) {
      const unsigned at = threadIdx.x + 128 * i;
      const int step = int(at / columns), value = int(at % columns);
      const bool live = step < left && value < in.live_values;
      v[i] = live ? in.v[(begin + step) * in.heads * in.V + value] : typename Format::Bits(0);
    }
  }
  __device__ __forceinline__ void decode(Shared& to) const {
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int at = int(threadIdx.x) + 128 * i;
      reinterpret_cast<float*>(to.queries)[at] = Query::decode(q[i]);
      reinterpret_cast<float*>(to.keys)[at] = Format::decode(k[i]);
      if constexpr (by_channel) reinterpret_cast<float*>(to.decays)[at] = decay_factor(Gate::decode(g[i]));
    }
    if constexpr (by_token)
      if (int(threadIdx.x) < steps) to.token_decays[threadIdx.x] = decay_factor(Gate::decode(g[0]));
#pragma unroll
    for (int i = 0; i < values; ++i)
      reinterpret_cast<float*>(to.values)[int(threadIdx.x) + 128 * i] = Format::decode(v[i]);
  }
};

// A lane's part of the state.
template <class Format, class Gate, int channels, bool exclusive, class Query>
struct RecurrentState {
  static constexpr int quads = channels / 16;
  using Shared = typename RecurrentBatch<Format, Gate, channels, Query>::Shared;
  float S[quads][4];
  float bonus[exclusive ? quads : 1][4];  // u
  float constant;                         // e^{gamma} of the head

  // One token; the lane's share of S^T q.
  __device__ __forceinline__ float advance(const Shared& batch, int step, int part, int column) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    const float v = batch.values[step][column];
    const float e_token = Gate::width == GateWidth::token ? batch.token_decays[step] : constant;
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      const float4 q = batch.queries[step][part + 4 * i], k = batch.keys[step][part + 4 * i];
      float4 e;
      if constexpr (Gate::width == GateWidth::channel) e = batch.decays[step][part + 4 * i];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float& s = S[i][c];
        const float write = component(k, c) * v;
        if constexpr (exclusive) sum[c] = fused(component(q, c), fused(bonus[i][c], write, s), sum[c]);
        if constexpr (Gate::width == GateWidth::none)
          s = s + write;
        else
          s = fused(Gate::width == GateWidth::channel ? component(e, c) : e_token, s, write);
        if constexpr (!exclusive) sum[c] = fused(component(q, c), s, sum[c]);
      }
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
};

// Sums of x[0..3] over the four lanes of a quarter group: lane part p gets that of x[p].
__device__ __forceinline__ float sum_and_spread(const float (&x)[4], int part) {
  const bool odd = part & 1, upper = part & 2;
  const float first = (odd ? x[1] : x[0]) + __shfl_xor_sync(0xffffffffu, odd ? x[0] : x[1], 1);
  const float second = (odd ? x[3] : x[2]) + __shfl_xor_sync(0xffffffffu, odd ? x[2] : x[3], 1);
  return (upper ? second : first) + __shfl_xor_sync(0xffffffffu, upper ? first : second, 2);
}

//   q, k [token, H, K]; v, o [token, H, V]; gates as Gate says; u [H, K] where exclusive, else null
//   initial_state (or null), final_state [N, H, K, V] fp32; sequences [N][3]: first token, tokens, (unused)
// Grid (x): N H ceil(V/32), 128 threads; K <= channels. final_state may be null.
template <class Format, class Gate, int channels, bool exclusive, class Query = Format>
__device__ __forceinline__ void recurrent(const typename Query::Bits* q, const typename Format::Bits* k,
                                          const typename Format::Bits* v, const typename Gate::Bits* gates,
                                          const typename Format::Bits* u, const float* initial_state,
                                          typename Format::Bits* o, float* final_state, const i64* sequences,
                                          float scale, int heads, int K, int V) {
  using Batch = RecurrentBatch<Format, Gate, channels, Query>;
  using State = RecurrentState<Format, Gate, channels, exclusive, Query>;
  __shared__ typename Batch::Shared batch;

  const int lane = int(threadIdx.x) & 31, part = lane & 3, column = int(threadIdx.x) >> 2;
  const int value_blocks = (V + Batch::columns - 1) / Batch::columns;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * Batch::columns, value = value_begin + column;
  block /= value_blocks;
  const int head = block % heads, sequence = block / heads;
  const i64 first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1];
  const i64 state_base = (i64(sequence) * heads + head) * K, token = first * heads + head;
  RecurrentInputs<Format, Gate, Query> in{q + token * K,
                                          k + token * K,
                                          v + token * V + value_begin,
                                          gates,
                                          gates != nullptr,
                                          tokens,
                                          heads,
                                          K,
                                          V,
                                          V - value_begin};
  if constexpr (Gate::width == GateWidth::channel) in.gates = gates + token * K;
  if constexpr (Gate::width == GateWidth::token) in.gates = gates + token;

  State state;
  state.constant = Gate::width == GateWidth::head ? decay_factor(Gate::decode(gates[head])) : 1.0f;
#pragma unroll
  for (int i = 0; i < State::quads * 4; ++i) {
    const int key = 4 * (part + 4 * (i >> 2)) + (i & 3);
    const bool live = initial_state != nullptr && key < K && value < V;
    state.S[i >> 2][i & 3] = live ? initial_state[(state_base + key) * V + value] : 0.0f;
    if constexpr (exclusive)
      state.bonus[i >> 2][i & 3] = key < K ? Format::decode(u[i64(head) * K + key]) : 0.0f;
  }

  typename Format::Bits* const to = o + token * V + value;
  const auto store = [&](i64 t, float sum) {
    if (value < V) to[t * heads * V] = Format::encode(sum * scale);
  };
  Batch next;
  next.load(in, 0);
  for (i64 begin = 0; begin < tokens; begin += Batch::steps) {
    next.decode(batch);
    __syncthreads();
    next.load(in, begin + Batch::steps);
    const int count = int(min(i64(Batch::steps), tokens - begin));
    int step = 0;
#pragma unroll 1
    for (; step + 4 <= count; step += 4) {
      float sum[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = state.advance(batch, step + i, part, column);
      store(begin + step + part, sum_and_spread(sum, part));
    }
#pragma unroll 1
    for (; step < count; ++step) {
      float sum[4] = {state.advance(batch, step, part, column), 0.0f, 0.0f, 0.0f};
      const float total = sum_and_spread(sum, part);
      if (part == 0) store(begin + step, total);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < State::quads * 4; ++i) {
    const int key = 4 * (part + 4 * (i >> 2)) + (i & 3);
    if (final_state != nullptr && key < K && value < V)
      final_state[(state_base + key) * V + value] = state.S[i >> 2][i & 3];
  }
}
