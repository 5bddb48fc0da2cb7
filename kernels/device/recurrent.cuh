// The recurrence, one token after the other, the state in registers, fp32 throughout:
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T
//   inclusive: o_t = scale S_t^T q_t          exclusive: o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T q_t
// A block owns one sequence and head and 32 value channels. A warp has 8 value channels: a lane holds key
// channels lane/2 + 16 i of four of them. Neighbours read the same keys, which halves what a load of 16 bytes
// takes of shared memory. Tokens pass through there in batches, which other warps load (scan_roles.cuh).
#pragma once
#include "decay.cuh"
#include "gate.cuh"
#include "scan_roles.cuh"

// A token's key channels in shared memory: those of a lane side by side, four at a time.
template <int channels>
struct KeyRow {
  static constexpr int held = channels / 16;
  static __device__ int channel_at(int place) {
    return held == 1 ? place : place / 64 * 64 + place % 4 * 16 + place % 64 / 4;
  }
  static __device__ __forceinline__ void load(const float* row, int part, float (&x)[held]) {
    if constexpr (held == 1) {
      x[0] = row[part];
    } else {
#pragma unroll
      for (int i = 0; i < held; i += 4) {
        const float4 quad = reinterpret_cast<const float4*>(row)[part + 4 * i];
        x[i] = quad.x, x[i + 1] = quad.y, x[i + 2] = quad.z, x[i + 3] = quad.w;
      }
    }
  }
};

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
  using Keys = KeyRow<channels>;

  struct Shared {
    float4 values[steps][columns / 4];
    float queries[steps][channels], keys[steps][channels], decays[by_channel ? steps : 1][channels];
    float token_decays[by_token ? steps : 1];
  };

  typename Query::Bits q[elements];
  typename Format::Bits k[elements], v[values];
  typename Gate::Bits g[by_channel ? elements : 1];

  __device__ __forceinline__ void load(const Inputs& in, i64 begin) {
    const i64 left = in.tokens - begin;
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const unsigned at = thread_of_scan() + 128 * i;
      const int step = int(at / channels), key = Keys::channel_at(int(at % channels));
      const bool live = step < left && key < in.K;
      const i64 from = (begin + step) * in.heads * in.K + key;
      q[i] = live ? in.q[from] : typename Query::Bits(0);
      k[i] = live ? in.k[from] : typename Format::Bits(0);
      if constexpr (by_channel) g[i] = live && in.has_gates ? in.gates[from] : typename Gate::Bits(0);
    }
    if constexpr (by_token) {
      const int step = thread_of_scan();
      g[0] = step < steps && step < left ? in.gates[(begin + step) * in.heads] : typename Gate::Bits(0);
    }
#pragma unroll
    for (int i = 0; i < values; ++i) {
      const unsigned at = thread_of_scan() + 128 * i;
      const int step = int(at / columns), value = int(at % columns);
      const bool live = step < left && value < in.live_values;
      v[i] = live ? in.v[(begin + step) * in.heads * in.V + value] : typename Format::Bits(0);
    }
  }
  __device__ __forceinline__ void decode(Shared& to) const {
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int at = thread_of_scan() + 128 * i;
      reinterpret_cast<float*>(to.queries)[at] = Query::decode(q[i]);
      reinterpret_cast<float*>(to.keys)[at] = Format::decode(k[i]);
      if constexpr (by_channel) reinterpret_cast<float*>(to.decays)[at] = decay_factor(Gate::decode(g[i]));
    }
    if constexpr (by_token)
      if (thread_of_scan() < steps) to.token_decays[thread_of_scan()] = decay_factor(Gate::decode(g[0]));
#pragma unroll
    for (int i = 0; i < values; ++i)
      reinterpret_cast<float*>(to.values)[thread_of_scan() + 128 * i] = Format::decode(v[i]);
  }
};

// A lane's part of the state: `held` key channels of four value channels.
template <class Format, class Gate, int channels, bool exclusive, class Query>
struct RecurrentState {
  using Keys = KeyRow<channels>;
  using Shared = typename RecurrentBatch<Format, Gate, channels, Query>::Shared;
  static constexpr int held = Keys::held;
  float S[held][4];
  float bonus[exclusive ? held : 1];  // u
  float constant;                     // e^{gamma} of the head

  // One token; the lane's share of S^T q.
  __device__ __forceinline__ void advance(const Shared& batch, int step, int part, int quad, float* sum) {
    const float4 values = batch.values[step][quad];
    const float v[4] = {values.x, values.y, values.z, values.w};
    const float e_token = Gate::width == GateWidth::token ? batch.token_decays[step] : constant;
    float q[held], k[held], e[held];
    Keys::load(batch.queries[step], part, q), Keys::load(batch.keys[step], part, k);
    if constexpr (Gate::width == GateWidth::channel) Keys::load(batch.decays[step], part, e);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      sum[c] = 0.0f;
#pragma unroll
      for (int i = 0; i < held; ++i) {
        float& s = S[i][c];
        const float write = k[i] * v[c];
        if constexpr (exclusive) sum[c] = fused(q[i], fused(bonus[i], write, s), sum[c]);
        if constexpr (Gate::width == GateWidth::none)
          s = s + write;
        else
          s = fused(Gate::width == GateWidth::channel ? e[i] : e_token, s, write);
        if constexpr (!exclusive) sum[c] = fused(q[i], s, sum[c]);
      }
    }
  }
};

// Sums over the 16 parts of a value channel, for `count` sums at once: part p gets that of x[p % count] in
// x[0], and of x[p + 16] in x[1] where there is one. All are added in the same order, so that a token's sum
// does not depend on its place.
template <int count, int level = 0, int size>
__device__ __forceinline__ void sum_and_spread(float (&x)[size], int part) {
  if constexpr (level < 4) {
    if constexpr (count == 1) {
      x[0] = x[0] + __shfl_xor_sync(0xffffffffu, x[0], 2 << level);
    } else {
      const bool odd = part >> level & 1;
#pragma unroll
      for (int i = 0; i < count / 2; ++i) {
        const float keep = odd ? x[2 * i + 1] : x[2 * i], give = odd ? x[2 * i] : x[2 * i + 1];
        x[i] = keep + __shfl_xor_sync(0xffffffffu, give, 2 << level);
      }
    }
    sum_and_spread<(count + 1) / 2, level + 1>(x, part);
  }
}

//   q, k [token, H, K]; v, o [token, H, V]; gates as Gate says; u [H, K] where exclusive, else null
//   initial_state (or null), final_state [N, H, K, V] fp32; sequences [N][3]: first token, tokens, (unused)
// Grid (x): N H ceil(V/32), 256 threads; K <= channels. final_state may be null.
template <class Format, class Gate, int channels, bool exclusive, class Query = Format>
__device__ __forceinline__ void recurrent(const typename Query::Bits* q, const typename Format::Bits* k,
                                          const typename Format::Bits* v, const typename Gate::Bits* gates,
                                          const typename Format::Bits* u, const float* initial_state,
                                          typename Format::Bits* o, float* final_state, const i64* sequences,
                                          float scale, int heads, int K, int V) {
  using Batch = RecurrentBatch<Format, Gate, channels, Query>;
  using State = RecurrentState<Format, Gate, channels, exclusive, Query>;
  constexpr int at_once = places_for_tokens<channels>;
  __shared__ __align__(16) typename Batch::Shared batches[at_once];

  const int part = int(threadIdx.x) % 32 / 2, quad = int(threadIdx.x) / 32 * 2 + int(threadIdx.x) % 2;
  const int value_blocks = (V + Batch::columns - 1) / Batch::columns;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * Batch::columns;
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
  for (int i = 0; i < State::held * 4; ++i) {
    const int key = part + 16 * (i >> 2), value = value_begin + 4 * quad + (i & 3);
    const bool live = initial_state != nullptr && key < K && value < V;
    state.S[i >> 2][i & 3] = live ? initial_state[(state_base + key) * V + value] : 0.0f;
    if constexpr (exclusive) state.bonus[i >> 2] = key < K ? Format::decode(u[i64(head) * K + key]) : 0.0f;
  }

  // Of sums that were spread a lane has those of one value channel, of every fourth token.
  const int own_value = value_begin + 4 * quad + part % 4, own_step = part / 4;
  typename Format::Bits* const to = o + token * V + own_value;
  const auto store = [&](i64 t, float sum) {
    if (own_value < V) to[t * heads * V] = Format::encode(sum * scale);
  };
  const auto compute = [&](const typename Batch::Shared& batch, i64 begin) {
    const int count = int(min(i64(Batch::steps), tokens - begin));
    int step = 0;
#pragma unroll 1
    for (; step + 8 <= count; step += 8) {
      float sum[8 * 4];
#pragma unroll
      for (int i = 0; i < 8; ++i) state.advance(batch, step + i, part, quad, sum + 4 * i);
      sum_and_spread<32>(sum, part);
      store(begin + step + own_step, sum[0]), store(begin + step + own_step + 4, sum[1]);
    }
#pragma unroll 1
    for (; step < count; ++step) {
      float sum[4];
      state.advance(batch, step, part, quad, sum);
      sum_and_spread<4>(sum, part);
      if (own_step == 0) store(begin + step, sum[0]);
    }
  };

  const bool computes = computes_in_scan();
  Batch next;
  if (!computes) next.load(in, 0), next.decode(batches[0]), next.load(in, Batch::steps);
#pragma unroll 1
  for (i64 begin = 0; begin < tokens; begin += Batch::steps) {
    const int which = int(begin / Batch::steps);
    __syncthreads();
    if (computes) compute(batches[which % at_once], begin);
    if constexpr (at_once == 1) __syncthreads();
    if (computes) continue;
    next.decode(batches[(which + 1) % at_once]);
    next.load(in, begin + 2 * Batch::steps);
  }
  if (!computes) return;
#pragma unroll
  for (int i = 0; i < State::held * 4; ++i) {
    const int key = part + 16 * (i >> 2), value = value_begin + 4 * quad + (i & 3);
    if (final_state != nullptr && key < K && value < V)
      final_state[(state_base + key) * V + value] = state.S[i >> 2][i & 3];
  }
}
