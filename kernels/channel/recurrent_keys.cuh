// Gradients token by token, third scan: G again (recurrent_values.cuh), with S again from what the first scan
// kept:
//   dk_t = G_t v_t     dg_t = e^{g_t} rowsum(S_{t-1} (.) G_t)     dinitial_state: G before the first token
// A block's rows are key channels, its columns value channels. Exclusive also, with
// c_t = scale q_t (do_t . v_t),
//   dk_t = G_t v_t + u c_t          du = sum_t k_t c_t, one sum per chunk
#pragma once
#include "recurrent_queries.cuh"

// A segment's tokens in shared memory.
template <class Lanes, int capacity>
struct KeySegment {
  __align__(16) float queries[segment][Lanes::rows], keys[segment][Lanes::rows], decays[segment][Lanes::rows],
      values[segment][capacity], cotangents[segment][capacity];
};

// One row of S and of G, and how both go over a segment.
template <int capacity, bool exclusive>
struct KeyScan {
  using Lanes = Columns<capacity>;
  static constexpr int per_lane = Lanes::per_lane;
  const KeySegment<Lanes, capacity>& x;
  int row, lane;
  float S[per_lane], G[per_lane];
  float before[segment][per_lane];  // S before each token

  // S over the segment, first token first.
  __device__ __forceinline__ void step_states(bool remember) {
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      const float k_t = x.keys[step][row], e_t = x.decays[step][row];
      float v_t[per_lane];
      Lanes::load(x.values[step], lane, v_t);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        if (remember) before[step][i] = S[i];
        S[i] = fused(e_t, S[i], k_t * v_t[i]);
      }
    }
  }
  // G over the segment's `live` tokens, last token first. The lane's part of the sums over its columns:
  // G_t v_t, rowsum(S_{t-1} (.) G_t) and, exclusive, scale q_t (do_t . v_t).
  __device__ __forceinline__ void step_gradients(int live, float scale, float (&dk_sum)[segment],
                                                 float (&dg_sum)[segment],
                                                 float (&own_sum)[exclusive ? segment : 1]) {
#pragma unroll
    for (int step = segment - 1; step >= 0; --step) {
      // Tokens that are not there add -0, which leaves also a G of -0 as it is.
      const float q_t = x.queries[step][row] * (step < live ? scale : -0.0f), e_t = x.decays[step][row];
      float v_t[per_lane], do_t[per_lane];
      Lanes::load(x.values[step], lane, v_t);
      Lanes::load(x.cotangents[step], lane, do_t);
      dk_sum[step] = dg_sum[step] = 0.0f;
      if constexpr (exclusive) own_sum[step] = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        if constexpr (!exclusive) G[i] = fused(q_t, do_t[i], G[i]);
        dk_sum[step] = fused(v_t[i], G[i], dk_sum[step]);
        dg_sum[step] = fused(before[step][i], G[i], dg_sum[step]);
        if constexpr (exclusive) {
          const float write = q_t * do_t[i];
          own_sum[step] = fused(v_t[i], write, own_sum[step]);
          G[i] = fused(e_t, G[i], write);
        } else {
          G[i] = e_t * G[i];
        }
      }
    }
  }
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
  __shared__ KeySegment<Lanes, capacity> x;
  __shared__ float kept_states[segments - 1][per_lane][128];
  KeptStates<per_lane> kept{kept_states};
  const Place place(sequences, heads, blocks_of(K, rows), rows);
  const int lane = int(threadIdx.x % lanes), row = int(threadIdx.x / lanes), key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  KeyScan<capacity, exclusive> scan{x, row, lane};
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
      next_k.write(x.keys), next_g.write_decays(x.decays), next_v.write(x.values);
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
      next_q.write(x.queries), next_k.write(x.keys), next_g.write_decays(x.decays), next_v.write(x.values),
          next_do.write(x.cotangents);
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
        bonus_sum = fused(x.keys[step][row], own, bonus_sum);
      }
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K) {
        const i64 to = ((place.first + begin + step) * heads + place.head) * K + key;
        dk[to] = KeyGradient::encode(dk_t);
        if (dg != nullptr) dg[to] = GateGradient::encode(x.decays[step][row] * dg_t);
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
