// Gradients token by token, third scan: G again (recurrent_values.cuh), with S again from what the first scan
// kept:
//   dk_t = G_t v_t     dg_t = e^{g_t} rowsum(S_{t-1} (.) G_t)     dinitial_state: G before the first token
// A block's rows are key channels, its columns value channels. Exclusive also, with
// c_t = scale q_t (do_t . v_t),
//   dk_t = G_t v_t + u c_t          du = sum_t k_t c_t, one sum per chunk
#pragma once
#include "../device/recurrent_rows.cuh"
#include "recurrent_queries.cuh"

// Of a block's rows.
template <int rows>
struct RowDecays {
  float (*of)[rows];
  __device__ __forceinline__ float at(int step, int row) const { return of[step][row]; }
  __device__ __forceinline__ float at(int step, int row, int) const { return at(step, row); }
};

// u [H, K] and du [chunk][H][K] where exclusive, else null; all else as in fused_recurrent_backward.cu.
// `Query`, `KeyGradient`, `GateGradient`: formats of q, dk and dg.
template <class Format, class Gate, int capacity, bool exclusive, class Query = Format,
          class KeyGradient = Format, class GateGradient = Gate>
__device__ __forceinline__ void keys(const typename Query::Bits* q, const typename Format::Bits* k,
                                     const typename Format::Bits* v, const typename Gate::Bits* g,
                                     const typename Format::Bits* u, const typename Format::Bits* d_o,
                                     const float* dfinal_state, const float* states,
                                     typename KeyGradient::Bits* dk, typename GateGradient::Bits* dg,
                                     float* dinitial_state, float* du, const i64* sequences, float scale,
                                     int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float queries[segment][rows], keys[segment][rows], decays[segment][rows],
      values[segment][capacity], cotangents[segment][capacity];
  __shared__ float kept_states[segments - 1][per_lane][128];
  KeptStates<per_lane> kept{kept_states};
  const Place place(sequences, heads, blocks_of(K, rows), rows);
  const int lane = int(threadIdx.x % lanes), row = int(threadIdx.x / lanes), key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  RowScan<capacity, RowDecays<rows>, true, exclusive> scan{
      {queries, keys, values, cotangents}, {decays}, row, lane};
  load_row<Lanes>(scan.G, dfinal_state, state_base, key < K, V, lane);
  const float bonus = exclusive && key < K ? Format::decode(u[i64(place.head) * K + key]) : 0.0f;
  Slab<Query, rows> next_q;
  Slab<Format, rows> next_k;
  Slab<Gate, rows> next_g;
  Slab<Format, capacity> next_v, next_do;
  const auto read = [&](i64 begin, int count, bool all) {
    const i64 token = (place.first + begin) * heads + place.head;
    const int channels = K - place.row_begin;
    next_k.read(k + token * K + place.row_begin, i64(heads) * K, count, channels);
    next_g.read(g + token * K + place.row_begin, i64(heads) * K, g == nullptr ? 0 : count, channels);
    next_v.read(v + token * V, i64(heads) * V, count, V);
    if (!all) return;
    next_q.read(q + token * K + place.row_begin, i64(heads) * K, count, channels);
    next_do.read(d_o + token * V, i64(heads) * V, count, V);
  };

#pragma unroll 1
  for (i64 chunk_begin = multiple_below(place.tokens - 1, chunk); chunk_begin >= 0; chunk_begin -= chunk) {
    const int live_segments = live_segments_of(place.tokens - chunk_begin);
    const float* from =
        states + (((place.slot + (chunk_begin >> chunk_bits)) * heads + place.head) * K + key) * capacity;
    float start[per_lane], bonus_sum = 0.0f;  // of the lane's step of each segment
#pragma unroll
    for (int i = 0; i < per_lane; ++i) scan.S[i] = start[i] = key < K ? from[Lanes::of(lane, i)] : 0.0f;
    if (live_segments > 1) read(chunk_begin, segment, false);
#pragma unroll 1
    for (int at = 0; at + 1 < live_segments; ++at) {
      next_k.write(keys), next_g.write_decays(decays), next_v.write(values);
      __syncthreads();
      if (at + 2 < live_segments) read(chunk_begin + (at + 1) * segment, segment, false);
      scan.step_states(false);
      kept.keep(at + 1, scan.S);
      __syncthreads();
    }
    const i64 last = chunk_begin + (live_segments - 1) * segment;
    read(last, tokens_of_segment(place.tokens - last), true);
#pragma unroll 1
    for (int at = live_segments - 1; at >= 0; --at) {
      const i64 begin = chunk_begin + at * segment;
      next_q.write(queries), next_k.write(keys), next_g.write_decays(decays), next_v.write(values),
          next_do.write(cotangents);
      __syncthreads();
      if (at > 0) {
        read(begin - segment, segment, true);
        kept.restore(at, scan.S);
      } else {
#pragma unroll
        for (int i = 0; i < per_lane; ++i) scan.S[i] = start[i];
      }
      scan.step_states(true);
      float dk_sum[segment], dg_sum[segment], own_sum[exclusive ? segment : 1];
      scan.step_gradients(tokens_of_segment(place.tokens - begin), scale, dk_sum, dg_sum, own_sum);
      float dk_t = sum_over_lanes<lanes>(dk_sum, lane);
      const float dg_t = sum_over_lanes<lanes>(dg_sum, lane);
      const int step = lane / (lanes / 8);
      if constexpr (exclusive) {
        const float own = sum_over_lanes<lanes>(own_sum, lane);
        dk_t = fused(bonus, own, dk_t);
        bonus_sum = fused(keys[step][row], own, bonus_sum);
      }
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K) {
        const i64 to = ((place.first + begin + step) * heads + place.head) * K + key;
        dk[to] = KeyGradient::encode(dk_t);
        if (dg != nullptr) dg[to] = GateGradient::encode(decays[step][row] * dg_t);
      }
      __syncthreads();
    }
    if constexpr (exclusive) {
#pragma unroll
      for (int mask = lanes / 2; mask >= lanes / 8; mask /= 2)
        bonus_sum = bonus_sum + __shfl_xor_sync(0xffffffffu, bonus_sum, mask);
      if (lane == 0 && key < K)
        du[((place.slot + (chunk_begin >> chunk_bits)) * heads + place.head) * K + key] = bonus_sum;
    }
  }
  store_row<Lanes>(dinitial_state, state_base, key < K, V, lane, scan.G);
}
