// Delta rules that read what the state holds of a key and write the difference back,
//   S' = e_t S_{t-1};  r_t = v_t - S'^T k_t;  u_t = beta_t r_t;  S_t = S' + k_t u_t^T
//   o_t = scale S_t^T q_t,
// one token after the other, by value channels, as columns.cuh has them. The decay e_t is of every key
// channel, of the token, or none (device/gate.cuh). Value heads share a key head in groups.
#pragma once
#include "../device/gate.cuh"
#include "columns.cuh"

// One sequence and head: what is given starts at the sequence's first token and the head, what has value
// channels at the block's first one. Null: beta is 1; per channel where `betas` are given.
template <class Format, class Gate>
struct RuleInputs {
  const typename Format::Bits *q, *k, *v, *beta, *betas;
  const typename Gate::Bits* gates;
  const float* residuals;
  i64 tokens;
  int key_heads, heads, K, V, live_columns;

  __device__ __forceinline__ void start(i64 first, int head, int first_value) {
    const i64 key_token = (first * key_heads + head / (heads / key_heads)) * K, token = first * heads + head,
              value = token * V + first_value;
    if (q != nullptr) q += key_token;
    k += key_token, v += value;
    if (beta != nullptr) beta += token;
    if (betas != nullptr) betas += value;
    if (residuals != nullptr) residuals += value;
    if constexpr (Gate::width == GateWidth::channel) gates += token * K;
    if constexpr (Gate::width == GateWidth::token) gates += token;
    live_columns = V - first_value;
  }
};

// `steps` tokens: as they lie in memory, in registers, then decoded in shared memory. `back`: with residuals.
template <class Format, class Gate, int channels, bool back>
struct RuleBatch {
  static constexpr int steps = channels > 128 ? 4 : 8;
  static constexpr int elements = steps * channels / 128, values = steps * block_columns / 128;
  static constexpr bool by_channel = Gate::width == GateWidth::channel,
                        by_token = Gate::width == GateWidth::token;
  using Inputs = RuleInputs<Format, Gate>;

  struct Shared {
    float4 keys[steps][channels / 4], queries[steps][channels / 4],
        decays[by_channel ? steps : 1][channels / 4];
    float token_decays[steps];
    float values[steps][block_columns], betas[steps][block_columns],
        residuals[back ? steps : 1][block_columns];
  };
  typename Format::Bits keys[elements], queries[elements], columns[values], betas[values];
  typename Gate::Bits gates[by_channel ? elements : 1];
  float residuals[back ? values : 1];

  // Tokens [begin, begin + steps) of those there are; one that is not there leaves the state as it is.
  __device__ __forceinline__ void load(const Inputs& in, i64 begin) {
    const i64 left = begin < 0 ? 0 : in.tokens - begin;
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int at = int(threadIdx.x) + 128 * i, step = at / channels, key = at % channels;
      const bool live = step < left && key < in.K;
      const i64 from = (begin + step) * in.key_heads * in.K + key;
      keys[i] = live ? in.k[from] : typename Format::Bits(0);
      queries[i] = live && in.q != nullptr ? in.q[from] : typename Format::Bits(0);
      if constexpr (by_channel)
        gates[i] = live ? in.gates[(begin + step) * in.heads * in.K + key] : typename Gate::Bits(0);
    }
    if constexpr (by_token) {
      const int step = int(threadIdx.x);
      gates[0] = step < steps && step < left ? in.gates[(begin + step) * in.heads] : typename Gate::Bits(0);
    }
#pragma unroll
    for (int i = 0; i < values; ++i) {
      const int at = int(threadIdx.x) + 128 * i, step = at / block_columns, column = at % block_columns;
      const bool live = step < left && column < in.live_columns;
      const i64 token = (begin + step) * in.heads, from = token * in.V + column;
      columns[i] = live ? in.v[from] : typename Format::Bits(0);
      betas[i] = Format::encode(1.0f);
      if (live && in.beta != nullptr) betas[i] = in.beta[token];
      if (live && in.betas != nullptr) betas[i] = in.betas[from];
      if constexpr (back) residuals[i] = live ? in.residuals[from] : 0.0f;
    }
  }
  __device__ __forceinline__ void decode(Shared& to, float scale) const {
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int at = int(threadIdx.x) + 128 * i;
      reinterpret_cast<float*>(to.keys)[at] = Format::decode(keys[i]);
      reinterpret_cast<float*>(to.queries)[at] = Format::decode(queries[i]) * scale;
      if constexpr (by_channel)
        reinterpret_cast<float*>(to.decays)[at] = decay_factor(Gate::decode(gates[i]));
    }
    if constexpr (by_token)
      if (int(threadIdx.x) < steps) to.token_decays[threadIdx.x] = decay_factor(Gate::decode(gates[0]));
#pragma unroll
    for (int i = 0; i < values; ++i) {
      const int at = int(threadIdx.x) + 128 * i;
      reinterpret_cast<float*>(to.values)[at] = Format::decode(columns[i]);
      reinterpret_cast<float*>(to.betas)[at] = Format::decode(betas[i]);
      if constexpr (back) reinterpret_cast<float*>(to.residuals)[at] = residuals[i];
    }
  }
};

// S <- e S, or G <- e G.
template <class Batch, int channels>
__device__ __forceinline__ void decay_column(Column<channels>& x, const typename Batch::Shared& batch,
                                             int step) {
  if constexpr (Batch::by_token) {
    const float e = batch.token_decays[step];
#pragma unroll
    for (int i = 0; i < x.quads * 4; ++i) x.S[i >> 2][i & 3] = e * x.S[i >> 2][i & 3];
  } else if constexpr (Batch::by_channel) {
#pragma unroll
    for (int i = 0; i < x.quads; ++i) {
      const float4 e = batch.decays[step][x.part + 4 * i];
#pragma unroll
      for (int c = 0; c < 4; ++c) x.S[i][c] = component(e, c) * x.S[i][c];
    }
  }
}

// S <- S + x y^T, of one column.
template <int channels>
__device__ __forceinline__ void add_to_column(Column<channels>& x, const float4* row, float y) {
#pragma unroll
  for (int i = 0; i < x.quads; ++i) {
    const float4 k = row[x.part + 4 * i];
#pragma unroll
    for (int c = 0; c < 4; ++c) x.S[i][c] = fused(component(k, c), y, x.S[i][c]);
  }
}

// S_t, and either o_t and the final state, or the residuals r_t and u_t that gradients start from.
//   q, k [token, key heads, K]; v, betas, o [token, heads, V]; beta [token, heads]; gates [token, heads] or
//   [token, heads, K]; residuals, updates [token, heads, V] fp32; states [N, heads, K, V] fp32
template <class Format, class Gate, int channels, bool outputs>
__device__ __forceinline__ void rule_columns(RuleInputs<Format, Gate> in, const float* initial_state,
                                             typename Format::Bits* o, float* residuals, float* updates,
                                             float* final_state, const i64* sequences, float scale) {
  using Batch = RuleBatch<Format, Gate, channels, false>;
  __shared__ typename Batch::Shared batch;
  Column<channels> x(sequences, in.heads, in.K, in.V);
  x.load(initial_state, in.K, in.V);
  const i64 row = x.first * in.heads + x.head;
  in.tokens = x.tokens;
  in.start(x.first, x.head, x.value - x.column);

  Batch next;
  next.load(in, 0);
#pragma unroll 1
  for (i64 begin = 0; begin < x.tokens; begin += Batch::steps) {
    next.decode(batch, 1.0f);
    __syncthreads();
    next.load(in, begin + Batch::steps);
    const int count = int(min(i64(Batch::steps), x.tokens - begin));
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
      decay_column<Batch>(x, batch, step);
      const float residual = batch.values[step][x.column] - x.product(batch.keys[step]);
      const float update = batch.betas[step][x.column] * residual;
      add_to_column(x, batch.keys[step], update);
      const i64 to = (row + (begin + step) * in.heads) * in.V + x.value;
      if constexpr (outputs) {
        const float sum = x.product(batch.queries[step]);
        if ((step & 3) == x.turn) o[to] = Format::encode(sum * scale);
      } else {
        if ((step & 3) == x.turn) residuals[to] = residual, updates[to] = update;
      }
    }
    __syncthreads();
  }
  if constexpr (outputs) x.store(final_state, in.K, in.V);
}

// Last token first, G_t = dL/dS_t:
//   G <- G + scale q_t do_t^T;  du = G^T k_t;  dr = beta_t du;  G <- e_t (G - k_t dr^T)
// dv_t = dr, also as fp32 in `pulls`; du (.) r_t is what beta's gradient sums, in `dbetas` or, as fp32, in
// `products`, whichever is not null. in.v is do.
template <class Format, class Gate, int channels>
__device__ __forceinline__ void rule_columns_back(RuleInputs<Format, Gate> in, const float* dfinal_state,
                                                  typename Format::Bits* dv, typename Format::Bits* dbetas,
                                                  float* pulls, float* products, const i64* sequences,
                                                  float scale) {
  using Batch = RuleBatch<Format, Gate, channels, true>;
  __shared__ typename Batch::Shared batch;
  Column<channels> x(sequences, in.heads, in.K, in.V);
  x.load(dfinal_state, in.K, in.V);
  const i64 row = x.first * in.heads + x.head;
  in.tokens = x.tokens;
  in.start(x.first, x.head, x.value - x.column);

  Batch next;
  const i64 last = (x.tokens - 1) / Batch::steps * Batch::steps;
  next.load(in, last);
#pragma unroll 1
  for (i64 begin = last; begin >= 0 && x.tokens > 0; begin -= Batch::steps) {
    next.decode(batch, scale);
    __syncthreads();
    next.load(in, begin - Batch::steps);
#pragma unroll 1
    for (int step = int(min(i64(Batch::steps), x.tokens - begin)) - 1; step >= 0; --step) {
      add_to_column(x, batch.queries[step], batch.values[step][x.column]);
      const float pull = x.product(batch.keys[step]), passed = batch.betas[step][x.column] * pull;
      add_to_column(x, batch.keys[step], -passed);
      decay_column<Batch>(x, batch, step);
      if ((step & 3) != x.turn) continue;
      const i64 to = (row + (begin + step) * in.heads) * in.V + x.value;
      const float product = pull * batch.residuals[step][x.column];
      dv[to] = Format::encode(passed);
      pulls[to] = passed;
      if (dbetas != nullptr) dbetas[to] = Format::encode(product);
      if (products != nullptr) products[to] = product;
    }
    __syncthreads();
  }
}
