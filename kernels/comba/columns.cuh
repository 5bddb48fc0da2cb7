// Comba by value channels, as delta/columns.cuh has them: a lane holds a quarter of a state's column. Tokens
// pass through shared memory in batches.
#pragma once
#include "../delta/columns.cuh"
#include "../device/gate.cuh"

namespace comba {

// The whole tensors; what is not read is null, beta then 1.
template <class Format, class Gate>
struct Inputs {
  const typename Format::Bits *q, *k, *v, *p, *beta;
  const typename Gate::Bits* g;
  const float* residuals;
  int key_heads, heads, K, V;
};

// `steps` tokens of one sequence and head, decoded. v: values, backward the cotangents of o.
template <class Format, class Gate, int channels>
struct Batch {
  static constexpr int steps = channels > 128 ? 4 : 8;
  float4 keys[steps][channels / 4], readers[steps][channels / 4], queries[steps][channels / 4];
  float values[steps][block_columns], residuals[steps][block_columns], betas[steps], decays[steps];

  __device__ __forceinline__ static float decoded(const typename Format::Bits* from, i64 at, bool live) {
    return from != nullptr && live ? Format::decode(from[at]) : 0.0f;
  }
  // Tokens [begin, begin + count); `scale`: of queries.
  __device__ __forceinline__ void load(const Inputs<Format, Gate>& in, const Column<channels>& x, i64 begin,
                                       int count, float scale) {
    const int key_head = x.head / (in.heads / in.key_heads), first_value = x.value - x.column;
    for (int at = int(threadIdx.x); at < count * channels; at += 128) {
      const int step = at / channels, key = at % channels;
      const i64 from = ((x.first + begin + step) * in.key_heads + key_head) * in.K + key;
      reinterpret_cast<float*>(keys)[at] = decoded(in.k, from, key < in.K);
      reinterpret_cast<float*>(readers)[at] = decoded(in.p, from, key < in.K);
      reinterpret_cast<float*>(queries)[at] = decoded(in.q, from, key < in.K) * scale;
    }
    for (int at = int(threadIdx.x); at < count * block_columns; at += 128) {
      const int step = at / block_columns, column = first_value + at % block_columns;
      const i64 from = ((x.first + begin + step) * in.heads + x.head) * in.V + column;
      reinterpret_cast<float*>(values)[at] = decoded(in.v, from, column < in.V);
      reinterpret_cast<float*>(residuals)[at] =
          in.residuals != nullptr && column < in.V ? in.residuals[from] : 0.0f;
    }
    if (int(threadIdx.x) < count) {
      const i64 from = (x.first + begin + int(threadIdx.x)) * in.heads + x.head;
      betas[threadIdx.x] = in.beta != nullptr ? Format::decode(in.beta[from]) : 1.0f;
      decays[threadIdx.x] = decay_factor(Gate::decode(in.g[from]));
    }
  }
};

// S <- e S + x y^T, of one column.
template <int channels>
__device__ __forceinline__ void step_column(Column<channels>& x, float e, const float4* row, float y) {
#pragma unroll
  for (int i = 0; i < x.quads; ++i) {
    const float4 k = row[x.part + 4 * i];
#pragma unroll
    for (int c = 0; c < 4; ++c) x.S[i][c] = fused(component(k, c), y, e * x.S[i][c]);
  }
}

// S_t, and either o_t and the final state, or the residuals r_t and u_t that gradients start from.
//   residuals, updates [token, heads, V] fp32
template <class Format, class Gate, int channels, bool outputs>
__device__ __forceinline__ void scan(const Inputs<Format, Gate>& in, const float* initial_state,
                                     typename Format::Bits* o, float* residuals, float* updates,
                                     float* final_state, const i64* sequences, float scale) {
  using Tokens = Batch<Format, Gate, channels>;
  __shared__ Tokens now;
  Column<channels> x(sequences, in.heads, in.K, in.V);
  x.load(initial_state, in.K, in.V);
#pragma unroll 1
  for (i64 begin = 0; begin < x.tokens; begin += Tokens::steps) {
    const int count = int(min(i64(Tokens::steps), x.tokens - begin));
    now.load(in, x, begin, count, 1.0f);
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
      const float residual = now.values[step][x.column] - x.product(now.readers[step]);
      const float update = now.betas[step] * residual;
      step_column(x, now.decays[step], now.keys[step], update);
      const i64 to = ((x.first + begin + step) * in.heads + x.head) * in.V + x.value;
      if constexpr (outputs) {
        const float sum = x.product(now.queries[step]);
        if ((step & 3) == x.turn) o[to] = Format::encode(sum * scale);
      } else {
        if ((step & 3) == x.turn) residuals[to] = residual, updates[to] = update;
      }
    }
    __syncthreads();
  }
  if constexpr (outputs) x.store(final_state, in.K, in.V);
}

// Last token first: G_t = dL/dS_t, du_t = G_t^T k_t, dr_t = beta_t du_t = dv_t, what beta's gradient sums.
//   G <- G + scale q_t do_t^T; dr_t; G <- e_t G - p_t dr_t^T
//   in.v: do; pulls (dr_t), products (or null: du_t r_t) [token, heads, V] fp32
template <class Format, class Gate, int channels>
__device__ __forceinline__ void scan_back(const Inputs<Format, Gate>& in, const float* dfinal_state,
                                          typename Format::Bits* dv, float* pulls, float* products,
                                          const i64* sequences, float scale) {
  using Tokens = Batch<Format, Gate, channels>;
  __shared__ Tokens now;
  Column<channels> x(sequences, in.heads, in.K, in.V);
  x.load(dfinal_state, in.K, in.V);
#pragma unroll 1
  for (i64 begin = (x.tokens - 1) / Tokens::steps * Tokens::steps; begin >= 0 && x.tokens > 0;
       begin -= Tokens::steps) {
    const int count = int(min(i64(Tokens::steps), x.tokens - begin));
    now.load(in, x, begin, count, scale);
    __syncthreads();
#pragma unroll 1
    for (int step = count - 1; step >= 0; --step) {
      step_column(x, 1.0f, now.queries[step], now.values[step][x.column]);
      const float pull = x.product(now.keys[step]), passed = now.betas[step] * pull;
      step_column(x, now.decays[step], now.readers[step], -passed);
      if ((step & 3) != x.turn) continue;
      const i64 to = ((x.first + begin + step) * in.heads + x.head) * in.V + x.value;
      dv[to] = Format::encode(passed), pulls[to] = passed;
      if (products != nullptr) products[to] = pull * now.residuals[step][x.column];
    }
    __syncthreads();
  }
}

}  // namespace comba
