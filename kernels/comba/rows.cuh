// Comba's gradients by key channels, once u_t and dr_t of every token are known: as delta/rule_rows.cuh,
// whose scan of queries it shares, but that a token reads its state before the decay, with p.
#pragma once
#include "../delta/rule_rows.cuh"

namespace comba {

template <class Format, class Gate>
struct RowInputs : rule::RowInputs<Format, Gate> {
  const typename Format::Bits* p;
};

// A segment on its way from memory, with p.
template <class Format, class Gate, int capacity>
struct NextSegment : rule::NextSegment<Format, Gate, capacity> {
  using Base = rule::NextSegment<Format, Gate, capacity>;
  Slab<Format, Columns<capacity>::rows> p;

  __device__ __forceinline__ void read_all(const RowInputs<Format, Gate>& in, const Place& place, i64 begin,
                                           typename Format::Bits missing) {
    this->read_states(in, place, begin), this->read_queries(in, place, begin, missing);
    p.read(in.p + Base::key_element(in, place, begin), i64(in.key_heads) * in.K,
           int(max(i64(0), min(i64(segment), place.tokens - begin))), in.K - place.row_begin);
  }
};

template <class Gate, int capacity>
struct Segment : rule::Segment<Gate, capacity> {
  float readers[segment][Columns<capacity>::rows];
};

// Of a segment, the lane's part of the sums.
struct Sums {
  float key[segment], reader[segment], gate[segment];
};

// One row's G over a segment, last token first, with S before each token:
//   dk_t = G_t u_t,   dp_t = -S_{t-1} dr_t,   dg_t = e_t rowsum(S_{t-1} (.) G_t),   G <- e_t G - p_t dr_t.
template <class Gate, int capacity>
__device__ __forceinline__ void step_back(const Segment<Gate, capacity>& now, int row, int lane, float scale,
                                          const float (&before)[segment][Columns<capacity>::per_lane],
                                          float (&G)[Columns<capacity>::per_lane], Sums& sums) {
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane;
#pragma unroll
  for (int step = segment - 1; step >= 0; --step) {
    const float q_t = now.queries[step][row] * scale, p_t = now.readers[step][row],
                e_t = now.decay(step, row);
    float x[per_lane], pull[per_lane];
    Lanes::load(now.cotangents[step], lane, x);
    Lanes::load(now.pulls[step], lane, pull);
    sums.key[step] = sums.reader[step] = sums.gate[step] = 0.0f;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      G[i] = fused(q_t, x[i], G[i]);
      sums.gate[step] = fused(before[step][i], G[i], sums.gate[step]);
      sums.reader[step] = fused(-before[step][i], pull[i], sums.reader[step]);
    }
    sums.gate[step] = e_t * sums.gate[step];
    Lanes::load(now.updates[step], lane, x);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      sums.key[step] = fused(x[i], G[i], sums.key[step]);
      G[i] = fused(-p_t, pull[i], e_t * G[i]);
    }
  }
}

// Where a row's gradients go: dk, dp, and dg's part of each key channel [token, heads, K] fp32.
template <class Format>
struct RowGradients {
  rule::KeyGradient<Format> dk, dp;
  float* dg;
};

// S at the start of each segment of 32 tokens from what was kept at the first; `from`: of the row.
template <class Format, class Gate, int capacity>
__device__ __forceinline__ void states_of_segments(const RowInputs<Format, Gate>& in, const Place& place,
                                                   i64 begin, int live_segments, int row, int lane,
                                                   Segment<Gate, capacity>& now,
                                                   NextSegment<Format, Gate, capacity>& next,
                                                   float (&S)[Columns<capacity>::per_lane],
                                                   float (*kept)[Columns<capacity>::per_lane][128]) {
#pragma unroll 1
  for (int at = 0; at + 1 < live_segments; ++at) {
    next.read_states(in, place, begin + at * segment);
    next.write_states(now);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      rule::decay_row<Gate, capacity>(now, step, row, S);
      rule::write_row<Gate, capacity>(now, step, row, lane, S);
    }
    KeptStates<Columns<capacity>::per_lane>{kept}.keep(at + 1, S);
    __syncthreads();
  }
}

// Last token first, S_t again from the states that rule::queries kept. dinitial_state = G_0, or null.
template <class Format, class Gate, int capacity>
__device__ __forceinline__ void keys(const RowInputs<Format, Gate>& in, const float* dfinal_state,
                                     const float* states, const RowGradients<Format>& to,
                                     float* dinitial_state, const i64* sequences, float scale) {
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ Segment<Gate, capacity> now;
  __shared__ float kept[rule::kept_segments - 1][per_lane][128];  // a lane reads only its own
  const Place place(sequences, in.heads, blocks_of(in.K, Lanes::rows), Lanes::rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, key = place.row_begin + row;
  const bool live = key < in.K;
  const i64 state = ((i64(place.sequence) * in.heads + place.head) * in.K + key) * in.V;
  // scale q do is -0 where there is no token: that leaves also a G of -0 as it is.
  const typename Format::Bits missing = Format::encode(scale < 0.0f ? 0.0f : -0.0f);

  float G[per_lane], S[per_lane], start[per_lane], before[segment][per_lane];
  load_row<Lanes>(G, dfinal_state, state, live, in.V, lane);
  NextSegment<Format, Gate, capacity> next;
#pragma unroll 1
  for (i64 chunk_begin = (place.tokens - 1) / rule::kept_every * rule::kept_every;
       chunk_begin >= 0 && place.tokens > 0; chunk_begin -= rule::kept_every) {
    const i64 slot = place.slot + chunk_begin / rule::kept_every;
    load_row<Lanes>(start, states, ((slot * in.heads + place.head) * in.K + key) * capacity, live, capacity,
                    lane);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) S[i] = start[i];
    const int live_segments = blocks_of(int(min(i64(rule::kept_every), place.tokens - chunk_begin)), segment);
    states_of_segments(in, place, chunk_begin, live_segments, row, lane, now, next, S, kept);
#pragma unroll 1
    for (int at = live_segments - 1; at >= 0; --at) {
      const i64 begin = chunk_begin + at * segment;
      next.read_all(in, place, begin, missing);
      next.write_states(now), next.q.write(now.queries), next.d_o.write(now.cotangents),
          next.pulls.write(now.pulls), next.p.write(now.readers);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < per_lane; ++i) S[i] = start[i];
      if (at > 0) KeptStates<per_lane>{kept}.restore(at, S);
#pragma unroll
      for (int step = 0; step < segment; ++step) {
#pragma unroll
        for (int i = 0; i < per_lane; ++i) before[step][i] = S[i];
        rule::decay_row<Gate, capacity>(now, step, row, S);
        rule::write_row<Gate, capacity>(now, step, row, lane, S);
      }
      Sums sums;
      step_back(now, row, lane, scale, before, G, sums);
      const float dk_t = sum_over_lanes<lanes>(sums.key, lane),
                  dp_t = sum_over_lanes<lanes>(sums.reader, lane),
                  dg_t = sum_over_lanes<lanes>(sums.gate, lane);
      const int step = lane / (lanes / 8);
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && live) {
        const i64 element = ((place.first + begin + step) * in.heads + place.head) * in.K + key;
        to.dk.store(element, dk_t), to.dp.store(element, dp_t), to.dg[element] = dg_t;
      }
      __syncthreads();
    }
  }
  store_row<Lanes>(dinitial_state, state, live, in.V, lane, G);
}

}  // namespace comba
