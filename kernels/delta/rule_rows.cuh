// The delta rules of rule_columns.cuh by key channels, once what every token writes (u_t) and what reaches
// its value (dr_t) is known: then a state's rows depend on nothing but each other, and sums over value
// channels stay inside a row. A block owns rows of one sequence and head, as in device/recurrent_lanes.cuh.
#pragma once
#include "../device/gate.cuh"
#include "../device/recurrent_lanes.cuh"
#include "delta_layout.h"

namespace rule {

constexpr int kept_every = assay::delta::kept_tokens;  // tokens between the states that are kept
constexpr int kept_segments = kept_every / segment;

// As in rule_columns.cuh, of the whole tensors.
template <class Format, class Gate>
struct RowInputs {
  const typename Format::Bits *q, *k, *d_o;
  const typename Gate::Bits* gates;
  const float *updates, *pulls;
  int key_heads, heads, K, V;
};

// Where a gradient of queries or keys goes: stored, or as fp32 for each value head, where several share one.
template <class Format>
struct KeyGradient {
  typename Format::Bits* stored;
  float* of_value_heads;

  __device__ __forceinline__ void store(i64 at, float x) const {
    if (stored != nullptr)
      stored[at] = Format::encode(x);
    else
      of_value_heads[at] = x;
  }
};

// A segment's factors of the block's rows, and its vectors over the columns, in shared memory.
template <class Gate, int capacity>
struct Segment {
  static constexpr int rows = Columns<capacity>::rows;
  static constexpr bool by_channel = Gate::width == GateWidth::channel,
                        by_token = Gate::width == GateWidth::token;
  float keys[segment][rows], queries[segment][rows], decays[by_channel ? segment : 1][rows];
  float token_decays[segment];
  __align__(16) float updates[segment][capacity], cotangents[segment][capacity], pulls[segment][capacity];

  __device__ __forceinline__ float decay(int step, int row) const {
    return by_channel ? decays[by_channel ? step : 0][row] : token_decays[step];
  }
};

// The same on its way from memory: bits in registers, read ahead of time.
template <class Format, class Gate, int capacity>
struct NextSegment {
  using Now = Segment<Gate, capacity>;
  Slab<Format, Now::rows> k, q;
  Slab<Gate, Now::by_channel ? Now::rows : 16> gates;
  Slab<Fp32, capacity> updates, pulls;
  Slab<Format, capacity> d_o;
  typename Gate::Bits token_gate;

  __device__ __forceinline__ void read_states(const RowInputs<Format, Gate>& in, const Place& place,
                                              i64 begin) {
    const int count = int(max(i64(0), min(i64(segment), place.tokens - begin))),
              channels = in.K - place.row_begin;
    const i64 token = (place.first + begin) * in.heads + place.head;
    k.read(in.k + key_element(in, place, begin), i64(in.key_heads) * in.K, count, channels);
    updates.read(in.updates + token * in.V, i64(in.heads) * in.V, count, in.V);
    if constexpr (Now::by_channel)
      gates.read(in.gates + token * in.K + place.row_begin, i64(in.heads) * in.K, count, channels);
    if constexpr (Now::by_token) {
      token_gate = typename Gate::Bits(0);
      if (int(threadIdx.x) < count) token_gate = in.gates[token + i64(threadIdx.x) * in.heads];
    }
  }
  // A cotangent that is not there is `missing`, a zero; what it pulls is 0 of either sign beside a key of 0.
  __device__ __forceinline__ void read_queries(const RowInputs<Format, Gate>& in, const Place& place,
                                               i64 begin, typename Format::Bits missing) {
    const int count = int(max(i64(0), min(i64(segment), place.tokens - begin)));
    const i64 token = (place.first + begin) * in.heads + place.head;
    d_o.read(in.d_o + token * in.V, i64(in.heads) * in.V, count, in.V, missing);
    if (in.q == nullptr) return;
    q.read(in.q + key_element(in, place, begin), i64(in.key_heads) * in.K, count, in.K - place.row_begin);
    pulls.read(in.pulls + token * in.V, i64(in.heads) * in.V, count, in.V);
  }
  static __device__ __forceinline__ i64 key_element(const RowInputs<Format, Gate>& in, const Place& place,
                                                    i64 begin) {
    const int key_head = place.head / (in.heads / in.key_heads);
    return ((place.first + begin) * in.key_heads + key_head) * in.K + place.row_begin;
  }
  __device__ __forceinline__ void write_states(Now& to) const {
    k.write(to.keys), updates.write(to.updates);
    if constexpr (Now::by_channel) {
#pragma unroll
      for (int i = 0; i < gates.count; ++i) {
        const int at = int(threadIdx.x) + 128 * i;
        if (at < segment * Now::rows) to.decays[0][at] = decay_factor(Gate::decode(gates.x[i]));
      }
    }
    if constexpr (Now::by_token)
      if (int(threadIdx.x) < segment) to.token_decays[threadIdx.x] = decay_factor(Gate::decode(token_gate));
  }
};

// One row's S over a token: S' = e_t S_{t-1}, S_t = S' + k_t u_t, with the bits of rule_columns.
template <class Gate, int capacity>
__device__ __forceinline__ void decay_row(const Segment<Gate, capacity>& x, int step, int row,
                                          float (&S)[Columns<capacity>::per_lane]) {
  if constexpr (has_decay<Gate>) {
    const float e = x.decay(step, row);
#pragma unroll
    for (int i = 0; i < Columns<capacity>::per_lane; ++i) S[i] = e * S[i];
  }
}
template <class Gate, int capacity>
__device__ __forceinline__ void write_row(const Segment<Gate, capacity>& x, int step, int row, int lane,
                                          float (&S)[Columns<capacity>::per_lane]) {
  const float k = x.keys[step][row];
  float u[Columns<capacity>::per_lane];
  Columns<capacity>::load(x.updates[step], lane, u);
#pragma unroll
  for (int i = 0; i < Columns<capacity>::per_lane; ++i) S[i] = fused(k, u[i], S[i]);
}

// dq_t = scale S_t do_t; S at the start of every 32 tokens is kept. in.q and in.pulls are null.
//   states [chunk][heads][K][capacity] fp32
template <class Format, class Gate, int capacity>
__device__ __forceinline__ void queries(const RowInputs<Format, Gate>& in, const float* initial_state,
                                        const KeyGradient<Format>& dq, float* states, const i64* sequences,
                                        float scale) {
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ Segment<Gate, capacity> now;
  const Place place(sequences, in.heads, blocks_of(in.K, Lanes::rows), Lanes::rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, key = place.row_begin + row;
  const bool live = key < in.K;

  float S[per_lane];
  load_row<Lanes>(S, initial_state, ((i64(place.sequence) * in.heads + place.head) * in.K + key) * in.V, live,
                  in.V, lane);
  NextSegment<Format, Gate, capacity> next;
  next.read_states(in, place, 0), next.read_queries(in, place, 0, typename Format::Bits(0));
#pragma unroll 1
  for (i64 begin = 0; begin < place.tokens; begin += segment) {
    next.write_states(now), next.d_o.write(now.cotangents);
    __syncthreads();
    next.read_states(in, place, begin + segment);
    next.read_queries(in, place, begin + segment, typename Format::Bits(0));
    if (begin % kept_every == 0 && live) {
      float* to =
          states + (((place.slot + begin / kept_every) * in.heads + place.head) * in.K + key) * capacity;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) to[Lanes::of(lane, i)] = S[i];
    }
    float sum[segment];
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      decay_row(now, step, row, S);
      write_row(now, step, row, lane, S);
      float do_t[per_lane];
      Lanes::load(now.cotangents[step], lane, do_t);
      sum[step] = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) sum[step] = fused(do_t[i], S[i], sum[step]);
    }
    const float result = sum_over_lanes<lanes>(sum, lane);
    const i64 step = lane / (lanes / 8);
    if (lane % (lanes / 8) == 0 && begin + step < place.tokens && live)
      dq.store(((place.first + begin + step) * in.heads + place.head) * in.K + key, result * scale);
    __syncthreads();
  }
}

// One row's G over a segment, last token first, with S' of each token; the lane's part of the sums
//   dk_t = G_t u_t - S' dr_t,   dg_t = rowsum(S' (.) (G_t - k_t dr_t^T)).
template <class Gate, int capacity>
__device__ __forceinline__ void step_back(const Segment<Gate, capacity>& now, int row, int lane, float scale,
                                          const float (&decayed)[segment][Columns<capacity>::per_lane],
                                          float (&G)[Columns<capacity>::per_lane], float (&dk)[segment],
                                          float (&dg)[segment]) {
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane;
#pragma unroll
  for (int step = segment - 1; step >= 0; --step) {
    const float q_t = now.queries[step][row] * scale, k_t = now.keys[step][row];
    float x[per_lane], pull[per_lane];
    Lanes::load(now.cotangents[step], lane, x);
    Lanes::load(now.pulls[step], lane, pull);
    dk[step] = dg[step] = 0.0f;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      G[i] = fused(q_t, x[i], G[i]);
      dk[step] = fused(-decayed[step][i], pull[i], dk[step]);
    }
    Lanes::load(now.updates[step], lane, x);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      dk[step] = fused(x[i], G[i], dk[step]);
      G[i] = fused(-k_t, pull[i], G[i]);
      if constexpr (has_decay<Gate>) dg[step] = fused(decayed[step][i], G[i], dg[step]);
    }
    decay_row(now, step, row, G);
  }
}

// Last token first, G_t as in rule_columns_back and S_t again from what was kept. dg: of a decay per channel
// [token, heads, K]; of one per token the same as fp32, to be summed. dinitial_state = G_0; null where it is
// not asked for.
template <class Format, class Gate, int capacity, class GateGradient>
__device__ __forceinline__ void keys(const RowInputs<Format, Gate>& in, const float* dfinal_state,
                                     const float* states, const KeyGradient<Format>& dk,
                                     const GateGradient& store_dg, float* dinitial_state,
                                     const i64* sequences, float scale) {
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ Segment<Gate, capacity> now;
  __shared__ float kept[kept_segments - 1][per_lane][128];  // a lane reads only its own
  const Place place(sequences, in.heads, blocks_of(in.K, Lanes::rows), Lanes::rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, key = place.row_begin + row;
  const bool live = key < in.K;
  const i64 state = ((i64(place.sequence) * in.heads + place.head) * in.K + key) * in.V;
  // scale q do is -0 where there is no token: that leaves also a G of -0 as it is.
  const typename Format::Bits missing = Format::encode(scale < 0.0f ? 0.0f : -0.0f);

  float G[per_lane], S[per_lane], decayed[segment][per_lane];
  load_row<Lanes>(G, dfinal_state, state, live, in.V, lane);
  NextSegment<Format, Gate, capacity> next;
#pragma unroll 1
  for (i64 chunk_begin = (place.tokens - 1) / kept_every * kept_every; chunk_begin >= 0 && place.tokens > 0;
       chunk_begin -= kept_every) {
    const int live_segments = int((min(i64(kept_every), place.tokens - chunk_begin) + segment - 1) / segment);
    const float* from =
        states + (((place.slot + chunk_begin / kept_every) * in.heads + place.head) * in.K + key) * capacity;
    float start[per_lane];
#pragma unroll
    for (int i = 0; i < per_lane; ++i) S[i] = start[i] = live ? from[Lanes::of(lane, i)] : 0.0f;
    next.read_states(in, place, chunk_begin);
#pragma unroll 1
    for (int at = 0; at + 1 < live_segments; ++at) {
      next.write_states(now);
      __syncthreads();
      next.read_states(in, place, chunk_begin + (at + 1) * segment);
#pragma unroll
      for (int step = 0; step < segment; ++step) {
        decay_row(now, step, row, S);
        write_row(now, step, row, lane, S);
      }
      KeptStates<per_lane>{kept}.keep(at + 1, S);
      __syncthreads();
    }
    next.read_queries(in, place, chunk_begin + (live_segments - 1) * segment, missing);
#pragma unroll 1
    for (int at = live_segments - 1; at >= 0; --at) {
      const i64 begin = chunk_begin + at * segment;
      next.write_states(now), next.q.write(now.queries), next.d_o.write(now.cotangents),
          next.pulls.write(now.pulls);
      __syncthreads();
      if (at > 0) {
        next.read_states(in, place, begin - segment);
        next.read_queries(in, place, begin - segment, missing);
        KeptStates<per_lane>{kept}.restore(at, S);
      } else {
#pragma unroll
        for (int i = 0; i < per_lane; ++i) S[i] = start[i];
      }
#pragma unroll
      for (int step = 0; step < segment; ++step) {
        decay_row(now, step, row, S);
#pragma unroll
        for (int i = 0; i < per_lane; ++i) decayed[step][i] = S[i];
        write_row(now, step, row, lane, S);
      }
      float dk_sum[segment], dg_sum[segment];
      step_back(now, row, lane, scale, decayed, G, dk_sum, dg_sum);
      const float dk_t = sum_over_lanes<lanes>(dk_sum, lane);
      float dg_t = 0.0f;
      if constexpr (has_decay<Gate>) dg_t = sum_over_lanes<lanes>(dg_sum, lane);
      const int step = lane / (lanes / 8);
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && live) {
        const i64 to = ((place.first + begin + step) * in.heads + place.head) * in.K + key;
        dk.store(to, dk_t);
        if constexpr (has_decay<Gate>) store_dg(to, dg_t);
      }
      __syncthreads();
    }
  }
  store_row<Lanes>(dinitial_state, state, live, in.V, lane, G);
}

}  // namespace rule
