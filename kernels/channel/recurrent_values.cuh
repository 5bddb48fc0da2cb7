// Gradients token by token, second scan: G = dL/dS from the last token on, and with it dv_t = G_t^T k_t, and
// dinitial_state: G before the first token. A block's rows are value channels, several per lane, its columns
// key channels. G at every chunk's end is kept for the keys.
//   inclusive: G_t = diag(e^{g_{t+1}}) G_{t+1} + scale q_t do_t^T
//   exclusive: G_{t-1} = diag(e^{g_t}) G_t + scale q_t do_t^T, of later tokens only;
//              dv_t = (G_t + scale diag(u) q_t do_t^T)^T k_t
#pragma once
#include "../device/recurrent_lanes.cuh"

// The lane's elements of a state [K, V]: rows of G are its columns. Nothing is stored where there is none.
template <class Lanes>
__device__ __forceinline__ void store_columns(float* state, int K, int V, int value, int lane,
                                              const float (&G)[Lanes::held][Lanes::per_lane]) {
#pragma unroll
  for (int i = 0; i < Lanes::per_lane; ++i) {
    const int key = Lanes::of(lane, i);
#pragma unroll
    for (int r = 0; r < Lanes::held; ++r)
      if (key < K && value + r < V) state[i64(key) * V + value + r] = G[r][i];
  }
}
// The same in a workspace, whose rows are aligned and `width` wide.
template <class Lanes>
__device__ __forceinline__ void keep_columns(float* state, int K, int width, int value, int lane,
                                             const float (&G)[Lanes::held][Lanes::per_lane]) {
#pragma unroll
  for (int i = 0; i < Lanes::per_lane; ++i) {
    const int key = Lanes::of(lane, i);
    float* const to = state + i64(key) * width + value;
    if (key >= K || value >= width) continue;
    if constexpr (Lanes::held == 4)
      *reinterpret_cast<float4*>(to) = make_float4(G[0][i], G[1][i], G[2][i], G[3][i]);
    else
      *to = G[0][i];
  }
}

// do of tokens that are not there: q do is -0, which leaves also a G of -0 as it is.
template <class Format>
__device__ __forceinline__ typename Format::Bits no_cotangent(float scale) {
  return Format::encode(scale < 0.0f ? 0.0f : -0.0f);
}

// u [H, K] where exclusive, else null; `width`: of the rows of adjoints, which may be null; all else as in
// fused_recurrent_backward.cu. `Query`: format of q. `block`: which of the grid described there.
template <class Format, class Gate, int capacity, bool exclusive, class Query = Format>
__device__ __forceinline__ void values(const typename Query::Bits* q, const typename Format::Bits* k,
                                       const typename Gate::Bits* g, const typename Format::Bits* u,
                                       const typename Format::Bits* d_o, const float* dfinal_state,
                                       typename Format::Bits* dv, float* adjoints, float* dinitial_state,
                                       const i64* sequences, float scale, int heads, int K, int V, int width,
                                       int block = int(blockIdx.x)) {
  using Lanes = Columns<capacity>;
  using Spread = SpreadLanes<capacity>;
  constexpr int held = Lanes::held, rows = Lanes::scan_rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  constexpr int at_once = places_for_tokens<capacity>;
  __shared__ __align__(16) float all_queries[at_once][segment][capacity],
      all_keys[at_once][segment][capacity], all_decays[at_once][segment][capacity],
      all_cotangents[at_once][segment][rows];
  const Place place(sequences, heads, blocks_of(V, rows), rows, block);
  const int lane = Spread::lane(), row = held * Spread::row(), value = place.row_begin + row;
  const i64 state_base = (i64(place.sequence) * heads + place.head) * K;
  float G[held][per_lane], bonus[exclusive ? per_lane : 1];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int key = Lanes::of(lane, i);
#pragma unroll
    for (int r = 0; r < held; ++r) {
      const bool live = dfinal_state != nullptr && key < K && value + r < V;
      G[r][i] = live ? dfinal_state[(state_base + key) * V + value + r] : 0.0f;
    }
    if constexpr (exclusive) bonus[i] = key < K ? Format::decode(u[i64(place.head) * K + key]) : 0.0f;
  }
  Slab<Query, capacity, true> next_q;
  Slab<Format, capacity, true> next_k;
  Slab<Gate, capacity, true> next_g;
  Slab<Format, rows, true> next_do;
  const auto read = [&](i64 begin, int count) {
    const i64 token = (place.first + begin) * heads + place.head;
    next_q.read(q + token * K, i64(heads) * K, count, K);
    next_k.read(k + token * K, i64(heads) * K, count, K);
    next_g.read(g + token * K, i64(heads) * K, g == nullptr ? 0 : count, K);
    next_do.read(d_o + token * V + place.row_begin, i64(heads) * V, count, V - place.row_begin,
                 no_cotangent<Format>(scale));
  };
  const i64 last = multiple_below(place.tokens - 1, segment);
  const auto write = [&](i64 begin) {
    const int which = int(begin / segment) % at_once;
    next_q.write_scaled(all_queries[which], scale), next_k.write(all_keys[which]);
    next_g.write_decays(all_decays[which]), next_do.write(all_cotangents[which]);
    if (begin > 0) read(begin - segment, segment);
  };
  const auto compute = [&](i64 begin) {
    const int which = int(begin / segment) % at_once;
    const float(*queries)[capacity] = all_queries[which], (*keys)[capacity] = all_keys[which];
    const float(*decays)[capacity] = all_decays[which], (*cotangents)[rows] = all_cotangents[which];
    if (adjoints != nullptr && (begin == last || (begin + segment) % chunk == 0)) {
      const i64 row = ((place.slot + (begin >> chunk_bits)) * heads + place.head) * K;
      keep_columns<Lanes>(adjoints + row * width, K, width, value, lane, G);
    }
    float sum[held][segment];
#pragma unroll
    for (int step = segment - 1; step >= 0; --step) {
      float q_t[per_lane], k_t[per_lane], e_t[per_lane];
      Lanes::load(queries[step], lane, q_t);
      Lanes::load(keys[step], lane, k_t);
      Lanes::load(decays[step], lane, e_t);
#pragma unroll
      for (int r = 0; r < held; ++r) {
        sum[r][step] = 0.0f;
#pragma unroll
        for (int i = 0; i < per_lane; ++i) {
          float& g = G[r][i];
          if constexpr (exclusive) {
            const float write = q_t[i] * cotangents[step][row + r];
            sum[r][step] = fused(k_t[i], fused(bonus[i], write, g), sum[r][step]);
            g = fused(e_t[i], g, write);
          } else {
            g = fused(q_t[i], cotangents[step][row + r], g);
            sum[r][step] = fused(k_t[i], g, sum[r][step]);
            g = e_t[i] * g;
          }
        }
      }
    }
    const i64 step = lane / (lanes / 8);
#pragma unroll
    for (int r = 0; r < held; ++r) {
      const float result = sum_over_lanes<lanes, Spread::apart>(sum[r], lane);
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && value + r < V)
        dv[((place.first + begin + step) * heads + place.head) * V + value + r] = Format::encode(result);
    }
  };
  const bool loads = !computes_in_scan(), computes = !loads && first_row_of_warp(place.row_begin, rows) < V;
  if (loads && place.tokens > 0) read(last, int(place.tokens - last)), write(last);
#pragma unroll 1
  for (i64 begin = last; begin >= 0; begin -= segment) {
    __syncthreads();
    if (computes) compute(begin);
    if constexpr (at_once == 1) __syncthreads();
    if (loads && begin > 0) write(begin - segment);
  }
  if (computes && dinitial_state != nullptr)
    store_columns<Lanes>(dinitial_state + state_base * V, K, V, value, lane, G);
}
