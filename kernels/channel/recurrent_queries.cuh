// Gradients token by token, first scan: S from the first token on, and with it
//   inclusive: dq_t = scale S_t do_t          exclusive: dq_t = scale (S_{t-1} + diag(u) k_t v_t^T) do_t
// A block's rows are key channels, its columns value channels. S at every chunk's start is kept for the keys.
#pragma once
#include "../device/recurrent_lanes.cuh"

// u [H, K] where exclusive, else null; states [chunk][H][K][capacity] and final_state [N, H, K, V] or null;
// all else as in fused_recurrent_backward.cu.
template <class Format, class Gate, int capacity, bool exclusive, class QueryGradient = Format>
__device__ __forceinline__ void queries(const typename Format::Bits* k, const typename Format::Bits* v,
                                        const typename Gate::Bits* g, const typename Format::Bits* u,
                                        const typename Format::Bits* d_o, const float* initial_state,
                                        typename QueryGradient::Bits* dq, float* states, const i64* sequences,
                                        float scale, int heads, int K, int V, float* final_state = nullptr) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float keys[segment][rows], decays[segment][rows], values[segment][capacity],
      cotangents[segment][capacity];
  const Place place(sequences, heads, blocks_of(K, rows), rows);
  const int lane = int(threadIdx.x % lanes), row = int(threadIdx.x / lanes), key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  float S[per_lane];
  load_row<Lanes>(S, initial_state, state_base, key < K, V, lane);
  // k v of tokens that are not there is -0, which leaves also an S of -0 as it is.
  const typename Format::Bits nothing = Format::encode(-0.0f);
  const float bonus = exclusive && key < K ? Format::decode(u[i64(place.head) * K + key]) : 0.0f;
  Slab<Format, rows> next_k;
  Slab<Gate, rows> next_g;
  Slab<Format, capacity> next_v, next_do;
  const auto read = [&](i64 begin) {
    const int count = tokens_of_segment(place.tokens - begin);
    const i64 token = (place.first + begin) * heads + place.head;
    next_k.read(k + token * K + place.row_begin, i64(heads) * K, count, K - place.row_begin);
    next_g.read(g + token * K + place.row_begin, i64(heads) * K, g == nullptr ? 0 : count,
                K - place.row_begin);
    next_v.read(v + token * V, i64(heads) * V, count, V, nothing);
    next_do.read(d_o + token * V, i64(heads) * V, count, V);
  };
  if (place.tokens > 0) read(0);
#pragma unroll 1
  for (i64 begin = 0; begin < place.tokens; begin += segment) {
    next_k.write(keys), next_g.write_decays(decays), next_v.write(values), next_do.write(cotangents);
    __syncthreads();
    if (begin + segment < place.tokens) read(begin + segment);
    if (states != nullptr && begin % chunk == 0 && key < K) {
      float* to = states + (((place.slot + (begin >> chunk_bits)) * heads + place.head) * K + key) * capacity;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) to[Lanes::of(lane, i)] = S[i];
    }
    float sum[segment];
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      const float k_t = keys[step][row], e_t = decays[step][row];
      float v_t[per_lane], do_t[per_lane];
      Lanes::load(values[step], lane, v_t);
      Lanes::load(cotangents[step], lane, do_t);
      sum[step] = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        const float write = k_t * v_t[i];
        if constexpr (exclusive) sum[step] = fused(do_t[i], fused(bonus, write, S[i]), sum[step]);
        S[i] = fused(e_t, S[i], write);
        if constexpr (!exclusive) sum[step] = fused(do_t[i], S[i], sum[step]);
      }
    }
    const float result = sum_over_lanes<lanes>(sum, lane);
    const i64 step = lane / (lanes / 8);
    if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K)
      dq[((place.first + begin + step) * heads + place.head) * K + key] =
          QueryGradient::encode(result * scale);
    __syncthreads();
  }
  store_row<Lanes>(final_state, state_base, key < K, V, lane, S);
}
