// gla.fused_recurrent, backward: one token after the other, fp32 throughout, three scans.
//   queries  S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  dq_t = scale S_t do_t; S at every 64th token is kept
//   values   G_t = diag(e^{g_{t+1}}) G_{t+1} + scale q_t do_t^T, last token first;  dv_t = G_t^T k_t
//   keys     G_t again, and S_t again from what was kept;  dk_t = G_t v_t,  dg_t = e^{g_t} rowsum(S_{t-1} (.)
//            G_t),  dinitial_state = e^{g_1} G_1
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, do, dq, dk, dv) -DGATE=... (g, dg).
//   q, k, g, dq, dk, dg [token, H, K]; v, do, dv [token, H, V]; g null: no decay (and then dg is null)
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   states: workspace [chunk][H][K][capacity] fp32, S at each chunk's start
//   sequences [N][3]: first token, tokens, first chunk of 64 tokens
// Grids (x): N H ceil(K/rows), values: N H ceil(V/rows), 128 threads; *_C serves V <= C (values: K <= C) with
// 128 / (C / 8) rows per block (C = 16: 16 rows).
#include "recurrent_lanes.cuh"

constexpr int chunk = 64, segments = chunk / segment;

template <class Format, class Gate, int capacity>
__device__ __forceinline__ void queries(const typename Format::Bits* k, const typename Format::Bits* v,
                                        const typename Gate::Bits* g, const typename Format::Bits* d_o,
                                        const float* initial_state, typename Format::Bits* dq, float* states,
                                        const i64* sequences, float scale, int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float keys[segment][rows], decays[segment][rows], values[segment][capacity],
      cotangents[segment][capacity];
  const Place place(sequences, heads, (K + rows - 1) / rows, rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  float S[per_lane];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int value = Lanes::of(lane, i);
    const bool live = initial_state != nullptr && key < K && value < V;
    S[i] = live ? initial_state[state_base + value] : 0.0f;
  }
  Slab<Format, rows> next_k;
  Slab<Gate, rows> next_g;
  Slab<Format, capacity> next_v, next_do;
  const auto read = [&](i64 begin) {
    const int count = int(max(i64(0), min(i64(segment), place.tokens - begin)));
    const i64 token = (place.first + begin) * heads + place.head;
    next_k.read(k + token * K + place.row_begin, i64(heads) * K, count, K - place.row_begin);
    next_g.read(g == nullptr ? nullptr : g + token * K + place.row_begin, i64(heads) * K, count,
                K - place.row_begin);
    next_v.read(v + token * V, i64(heads) * V, count, V);
    next_do.read(d_o + token * V, i64(heads) * V, count, V);
  };
  read(0);
#pragma unroll 1
  for (i64 begin = 0; begin < place.tokens; begin += segment) {
    next_k.write(keys), next_g.write_decays(decays), next_v.write(values), next_do.write(cotangents);
    __syncthreads();
    read(begin + segment);
    if (begin % chunk == 0 && key < K) {
      float* to = states + (((place.slot + begin / chunk) * heads + place.head) * K + key) * capacity;
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
        S[i] = fused(e_t, S[i], k_t * v_t[i]);
        sum[step] = fused(do_t[i], S[i], sum[step]);
      }
    }
    const float result = sum_over_lanes<lanes>(sum, lane);
    const i64 step = lane / (lanes / 8);
    if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K)
      dq[((place.first + begin + step) * heads + place.head) * K + key] = Format::encode(result * scale);
    __syncthreads();
  }
}

template <class Format, class Gate, int capacity>
__device__ __forceinline__ void values(const typename Format::Bits* q, const typename Format::Bits* k,
                                       const typename Gate::Bits* g, const typename Format::Bits* d_o,
                                       const float* dfinal_state, typename Format::Bits* dv,
                                       const i64* sequences, float scale, int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float queries[segment][capacity], keys[segment][capacity],
      decays[segment][capacity], cotangents[segment][rows];
  const Place place(sequences, heads, (V + rows - 1) / rows, rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, value = place.row_begin + row;
  const i64 state_base = (i64(place.sequence) * heads + place.head) * K;

  float G[per_lane];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int key = Lanes::of(lane, i);
    const bool live = dfinal_state != nullptr && key < K && value < V;
    G[i] = live ? dfinal_state[(state_base + key) * V + value] : 0.0f;
  }
  // scale q do of tokens that are not there is -0, which leaves also a G of -0 as it is.
  const typename Format::Bits nothing = Format::encode(scale < 0.0f ? 0.0f : -0.0f);
  Slab<Format, capacity> next_q, next_k;
  Slab<Gate, capacity> next_g;
  Slab<Format, rows> next_do;
  const auto read = [&](i64 begin) {
    const int count = begin < 0 ? 0 : int(min(i64(segment), place.tokens - begin));
    const i64 token = (place.first + begin) * heads + place.head;
    next_q.read(q + token * K, i64(heads) * K, count, K);
    next_k.read(k + token * K, i64(heads) * K, count, K);
    next_g.read(g == nullptr ? nullptr : g + token * K, i64(heads) * K, count, K);
    next_do.read(d_o + token * V + place.row_begin, i64(heads) * V, count, V - place.row_begin, nothing);
  };
  const i64 last = (place.tokens - 1) / segment * segment;
  read(last);
#pragma unroll 1
  for (i64 begin = last; begin >= 0 && place.tokens > 0; begin -= segment) {
    next_q.write(queries), next_k.write(keys), next_g.write_decays(decays), next_do.write(cotangents);
    __syncthreads();
    read(begin - segment);
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
        G[i] = fused(q_t[i] * scale, do_t, G[i]);
        sum[step] = fused(k_t[i], G[i], sum[step]);
        G[i] = e_t[i] * G[i];
      }
    }
    const float result = sum_over_lanes<lanes>(sum, lane);
    const i64 step = lane / (lanes / 8);
    if (lane % (lanes / 8) == 0 && begin + step < place.tokens && value < V)
      dv[((place.first + begin + step) * heads + place.head) * V + value] = Format::encode(result);
    __syncthreads();
  }
}

// One row's S over a chunk: kept at the start of each segment but the first in shared memory, which only the
// lane itself reads.
template <int per_lane>
struct KeptStates {
  float (*at)[per_lane][128];
  __device__ void keep(int index, const float (&S)[per_lane]) {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) at[index - 1][i][threadIdx.x] = S[i];
  }
  __device__ void restore(int index, float (&S)[per_lane]) const {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) S[i] = at[index - 1][i][threadIdx.x];
  }
};

template <class Format, class Gate, int capacity>
__device__ __forceinline__ void keys(const typename Format::Bits* q, const typename Format::Bits* k,
                                     const typename Format::Bits* v, const typename Gate::Bits* g,
                                     const typename Format::Bits* d_o, const float* dfinal_state,
                                     const float* states, typename Format::Bits* dk, typename Gate::Bits* dg,
                                     float* dinitial_state, const i64* sequences, float scale, int heads,
                                     int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float queries[segment][rows], keys[segment][rows], decays[segment][rows],
      values[segment][capacity], cotangents[segment][capacity];
  __shared__ float kept_states[segments - 1][per_lane][128];
  KeptStates<per_lane> kept{kept_states};
  const Place place(sequences, heads, (K + rows - 1) / rows, rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  float G[per_lane];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int value = Lanes::of(lane, i);
    const bool live = dfinal_state != nullptr && key < K && value < V;
    G[i] = live ? dfinal_state[state_base + value] : 0.0f;
  }
  // scale q do of tokens that are not there is -0, which leaves also a G of -0 as it is.
  const typename Format::Bits nothing = Format::encode(scale < 0.0f ? 0.0f : -0.0f);
  Slab<Format, rows> next_q, next_k;
  Slab<Gate, rows> next_g;
  Slab<Format, capacity> next_v, next_do;
  const auto read = [&](i64 begin, bool all) {
    const int count = begin < 0 ? 0 : int(max(i64(0), min(i64(segment), place.tokens - begin)));
    const i64 token = (place.first + begin) * heads + place.head;
    const int channels = K - place.row_begin;
    next_k.read(k + token * K + place.row_begin, i64(heads) * K, count, channels);
    next_g.read(g == nullptr ? nullptr : g + token * K + place.row_begin, i64(heads) * K, count, channels);
    next_v.read(v + token * V, i64(heads) * V, count, V);
    if (!all) return;
    next_q.read(q + token * K + place.row_begin, i64(heads) * K, count, channels);
    next_do.read(d_o + token * V, i64(heads) * V, count, V, nothing);
  };
  float S[per_lane], before[segment][per_lane];
  const auto step_states = [&](bool remember) {
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      const float k_t = keys[step][row], e_t = decays[step][row];
      float v_t[per_lane];
      Lanes::load(values[step], lane, v_t);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        if (remember) before[step][i] = S[i];
        S[i] = fused(e_t, S[i], k_t * v_t[i]);
      }
    }
  };

#pragma unroll 1
  for (i64 chunk_begin = (place.tokens - 1) / chunk * chunk; chunk_begin >= 0 && place.tokens > 0;
       chunk_begin -= chunk) {
    const int live_segments = int((min(i64(chunk), place.tokens - chunk_begin) + segment - 1) / segment);
    const float* from =
        states + (((place.slot + chunk_begin / chunk) * heads + place.head) * K + key) * capacity;
    float start[per_lane];
#pragma unroll
    for (int i = 0; i < per_lane; ++i) S[i] = start[i] = key < K ? from[Lanes::of(lane, i)] : 0.0f;
    read(chunk_begin, false);
#pragma unroll 1
    for (int at = 0; at + 1 < live_segments; ++at) {
      next_k.write(keys), next_g.write_decays(decays), next_v.write(values);
      __syncthreads();
      read(chunk_begin + (at + 1) * segment, false);
      step_states(false);
      kept.keep(at + 1, S);
      __syncthreads();
    }
    read(chunk_begin + (live_segments - 1) * segment, true);
#pragma unroll 1
    for (int at = live_segments - 1; at >= 0; --at) {
      const i64 begin = chunk_begin + at * segment;
      next_q.write(queries), next_k.write(keys), next_g.write_decays(decays), next_v.write(values),
          next_do.write(cotangents);
      __syncthreads();
      if (at > 0) read(begin - segment, true);
      if (at > 0) {
        kept.restore(at, S);
      } else {
#pragma unroll
        for (int i = 0; i < per_lane; ++i) S[i] = start[i];
      }
      step_states(true);
      float dk_sum[segment], dg_sum[segment];
#pragma unroll
      for (int step = segment - 1; step >= 0; --step) {
        const float q_t = queries[step][row] * scale, e_t = decays[step][row];
        float v_t[per_lane], do_t[per_lane];
        Lanes::load(values[step], lane, v_t);
        Lanes::load(cotangents[step], lane, do_t);
        dk_sum[step] = dg_sum[step] = 0.0f;
#pragma unroll
        for (int i = 0; i < per_lane; ++i) {
          G[i] = fused(q_t, do_t[i], G[i]);
          dk_sum[step] = fused(v_t[i], G[i], dk_sum[step]);
          dg_sum[step] = fused(before[step][i], G[i], dg_sum[step]);
          G[i] = e_t * G[i];
        }
      }
      const float dk_t = sum_over_lanes<lanes>(dk_sum, lane), dg_t = sum_over_lanes<lanes>(dg_sum, lane);
      const int step = lane / (lanes / 8);
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K) {
        const i64 to = ((place.first + begin + step) * heads + place.head) * K + key;
        dk[to] = Format::encode(dk_t);
        if (dg != nullptr) dg[to] = Gate::encode(decays[step][row] * dg_t);
      }
      __syncthreads();
    }
  }
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int value = Lanes::of(lane, i);
    if (dinitial_state != nullptr && key < K && value < V) dinitial_state[state_base + value] = G[i];
  }
}

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNELS(capacity)                                                                          \
  extern "C" __global__ void __launch_bounds__(128) gla_fused_recurrent_queries_##capacity(                  \
      const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g, const Element::Bits* d_o,        \
      const float* initial_state, Element::Bits* dq, float* states, const i64* sequences, float scale,       \
      int heads, int key_channels, int value_channels) {                                                     \
    queries<Element, Decay, capacity>(k, v, g, d_o, initial_state, dq, states, sequences, scale, heads,      \
                                      key_channels, value_channels);                                         \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) gla_fused_recurrent_values_##capacity(                   \
      const Element::Bits* q, const Element::Bits* k, const Decay::Bits* g, const Element::Bits* d_o,        \
      const float* dfinal_state, Element::Bits* dv, const i64* sequences, float scale, int heads,            \
      int key_channels, int value_channels) {                                                                \
    values<Element, Decay, capacity>(q, k, g, d_o, dfinal_state, dv, sequences, scale, heads, key_channels,  \
                                     value_channels);                                                        \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) gla_fused_recurrent_keys_##capacity(                     \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g,          \
      const Element::Bits* d_o, const float* dfinal_state, const float* states, Element::Bits* dk,           \
      Decay::Bits* dg, float* dinitial_state, const i64* sequences, float scale, int heads,                  \
      int key_channels, int value_channels) {                                                                \
    keys<Element, Decay, capacity>(q, k, v, g, d_o, dfinal_state, states, dk, dg, dinitial_state, sequences, \
                                   scale, heads, key_channels, value_channels);                              \
  }

RECURRENT_KERNELS(16)
RECURRENT_KERNELS(64)
RECURRENT_KERNELS(128)
RECURRENT_KERNELS(256)
