// Gradients token by token, second scan: G = dL/dS from the last token on, and with it dv_t = G_t^T k_t. A
// block's rows are value channels, its columns key channels.
//   inclusive: G_t = diag(e^{g_{t+1}}) G_{t+1} + scale q_t do_t^T
//   exclusive: G_{t-1} = diag(e^{g_t}) G_t + scale q_t do_t^T, of later tokens only;
//              dv_t = (G_t + scale diag(u) q_t do_t^T)^T k_t
#pragma once
#include "../device/recurrent_lanes.cuh"

// u [H, K] where exclusive, else null; all else as in fused_recurrent_backward.cu. `Query`: format of q.
template <class Format, class Gate, int capacity, bool exclusive, class Query = Format>
__device__ __forceinline__ void values(const typename Query::Bits* q, const typename Format::Bits* k,
                                       const typename Gate::Bits* g, const typename Format::Bits* u,
                                       const typename Format::Bits* d_o, const float* dfinal_state,
                                       typename Format::Bits* dv, const i64* sequences, float scale,
                                       int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float queries[segment][capacity], keys[segment][capacity],
      decays[segment][capacity], cotangents[segment][rows];
  const Place place(sequences, heads, blocks_of(V, rows), rows);
  const int lane = int(threadIdx.x % lanes), row = int(threadIdx.x / lanes), value = place.row_begin + row;
  const i64 state_base = (i64(place.sequence) * heads + place.head) * K;

  float G[per_lane], bonus[exclusive ? per_lane : 1];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int key = Lanes::of(lane, i);
    const bool live = dfinal_state != nullptr && key < K && value < V;
    G[i] = live ? dfinal_state[(state_base + key) * V + value] : 0.0f;
    if constexpr (exclusive) bonus[i] = key < K ? Format::decode(u[i64(place.head) * K + key]) : 0.0f;
  }
  Slab<Query, capacity> next_q;
  Slab<Format, capacity> next_k;
  Slab<Gate, capacity> next_g;
  Slab<Format, rows> next_do;
  const auto read = [&](i64 begin, int count) {
    const i64 token = (place.first + begin) * heads + place.head;
    next_q.read(q + token * K, i64(heads) * K, count, K);
    next_k.read(k + token * K, i64(heads) * K, count, K);
    next_g.read(g + token * K, i64(heads) * K, g == nullptr ? 0 : count, K);
    next_do.read(d_o + token * V + place.row_begin, i64(heads) * V, count, V - place.row_begin);
  };
  const i64 last = multiple_below(place.tokens - 1, segment);
  if (place.tokens > 0) read(last, int(place.tokens - last));
#pragma unroll 1
  for (i64 begin = last; begin >= 0; begin -= segment) {
    next_q.write(queries), next_k.write(keys), next_g.write_decays(decays), next_do.write(cotangents);
    __syncthreads();
    if (begin > 0) read(begin - segment, segment);
    float sum[segment];
#pragma unroll
    for (int step = segment - 1; step >= 0; --step) {
      const float do_t = cotangents[step][row];
      float q_t[per_lane], k_t[per_lane], e_t[per_lane];
      Lanes::load(queries[step], lane, q_t);
      Lanes::load(keys[step], lane, k_t);
      Lanes::load(decays[step], lane, e_t);
      sum[step] = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        if constexpr (exclusive) {
          const float write = q_t[i] * scale * do_t;
          sum[step] = fused(k_t[i], fused(bonus[i], write, G[i]), sum[step]);
          G[i] = fused(e_t[i], G[i], write);
        } else {
          G[i] = fused(q_t[i] * scale, do_t, G[i]);
          sum[step] = fused(k_t[i], G[i], sum[step]);
          G[i] = e_t[i] * G[i];
        }
      }
    }
    const float result = sum_over_lanes<lanes>(sum, lane);
    const i64 step = lane / (lanes / 8);
    if (lane % (lanes / 8) == 0 && begin + step < place.tokens && value < V)
      dv[((place.first + begin + step) * heads + place.head) * V + value] = Format::encode(result);
    __syncthreads();
  }
}
