// Delta rules by key channels, once what every token read (reader_t^T S_{t-1}) and what it pulls (G_t^T
// writer_t) is known: then a state's rows depend on nothing but each other either, and sums over value
// channels stay inside a row. A block owns rows of one sequence and head, as in device/recurrent_lanes.cuh.
#pragma once
#include "../device/recurrent_lanes.cuh"
#include "delta_layout.h"
#include "transition.cuh"

namespace rows {

constexpr int chunk = assay::delta::kept_tokens,
              segments = chunk / segment;  // tokens between the states that are kept

// A segment's factors of the block's rows, and its vectors over the columns, in shared memory.
template <int capacity>
struct Segment {
  static constexpr int rows = Columns<capacity>::rows;
  float decays[segment][rows], readers[segment][rows], writers[segment][rows], keys[segment][rows],
      queries[segment][rows];
  __align__(16) float values[segment][capacity], reads[segment][capacity],
      cotangents[segment][capacity], pulls[segment][capacity];
};

// The same on its way from memory: bits in registers, read ahead of time.
template <class Transition, int capacity>
struct NextSegment {
  using Format = typename Transition::Format;
  static constexpr int rows = Columns<capacity>::rows, count = (segment * rows + 127) / 128;
  typename Transition::Raw factors[count];
  Slab<Format, rows> q;
  Slab<Format, capacity> v, d_o;
  Slab<Fp32, capacity> reads, pulls;

  __device__ __forceinline__ void read_factors(const typename Transition::Inputs& in, i64 element, i64 stride,
                                               int tokens, int channels) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = int(threadIdx.x) + 128 * i, token = at / rows, row = at % rows;
      factors[i] = Transition::load(in, element + token * stride + row, token < tokens && row < channels);
    }
  }
  __device__ __forceinline__ void write_factors(Segment<capacity>& to) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = int(threadIdx.x) + 128 * i;
      if (at >= segment * rows) continue;
      const StepFactors x = Transition::decode(factors[i]);
      to.decays[0][at] = x.decay, to.readers[0][at] = x.reader, to.writers[0][at] = x.writer,
      to.keys[0][at] = x.key;
    }
  }
};

// One row's S over a segment: S_t = e_t S_{t-1} + w_t reads_t + k_t v_t, with the bits of scan_columns.
template <int capacity>
__device__ __forceinline__ void advance(const Segment<capacity>& x, int step, int row, int lane,
                                        float (&S)[Columns<capacity>::per_lane]) {
  using Lanes = Columns<capacity>;
  const float e = x.decays[step][row], w = x.writers[step][row], k = x.keys[step][row];
  float v[Lanes::per_lane], read[Lanes::per_lane];
  Lanes::load(x.values[step], lane, v);
  Lanes::load(x.reads[step], lane, read);
#pragma unroll
  for (int i = 0; i < Lanes::per_lane; ++i) S[i] = fused(e, S[i], fused(w, read[i], k * v[i]));
}

// The sums over value channels that one row's gradients are, of each token of a segment.
struct FactorSums {
  float key[segment], decay[segment], reader[segment], writer[segment];
};

// One row's G over a segment, last token first, with S before each token; the lane's part of the sums.
template <int capacity>
__device__ __forceinline__ void step_back(const Segment<capacity>& now, int row, int lane, float scale,
                                          const float (&before)[segment][Columns<capacity>::per_lane],
                                          float (&G)[Columns<capacity>::per_lane], FactorSums& sums) {
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane;
#pragma unroll
  for (int step = segment - 1; step >= 0; --step) {
    const float q_t = now.queries[step][row] * scale, e_t = now.decays[step][row],
                reader = now.readers[step][row];
    float x[per_lane], pull[per_lane];
    Lanes::load(now.cotangents[step], lane, x);
    Lanes::load(now.pulls[step], lane, pull);
    sums.key[step] = sums.decay[step] = sums.reader[step] = sums.writer[step] = 0.0f;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      G[i] = fused(q_t, x[i], G[i]);
      sums.decay[step] = fused(before[step][i], G[i], sums.decay[step]);
      sums.reader[step] = fused(before[step][i], pull[i], sums.reader[step]);
    }
    Lanes::load(now.values[step], lane, x);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) sums.key[step] = fused(x[i], G[i], sums.key[step]);
    Lanes::load(now.reads[step], lane, x);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      sums.writer[step] = fused(x[i], G[i], sums.writer[step]);
      G[i] = fused(e_t, G[i], reader * pull[i]);
    }
  }
}

template <int capacity>
struct RowState {
  using Lanes = Columns<capacity>;
  static __device__ __forceinline__ void load(float (&S)[Lanes::per_lane], const float* from, i64 base,
                                              int lane, bool row_live, int V) {
#pragma unroll
    for (int i = 0; i < Lanes::per_lane; ++i) {
      const int value = Lanes::of(lane, i);
      S[i] = from != nullptr && row_live && value < V ? from[base + value] : 0.0f;
    }
  }
};

// dq_t = scale S_t do_t; S at every chunk's start is kept.
//   q.., dq [token, H, K]; v, do [token, H, V]; reads [token, H, V] fp32; states [chunk][H][K][capacity] fp32
template <class Transition, int capacity>
__device__ __forceinline__ void queries(const typename Transition::Inputs& in,
                                        const typename Transition::Format::Bits* v, const float* reads,
                                        const typename Transition::Format::Bits* d_o,
                                        const float* initial_state, typename Transition::Format::Bits* dq,
                                        float* states, const i64* sequences, float scale, int heads, int K,
                                        int V) {
  using Format = typename Transition::Format;
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ Segment<capacity> now;
  const Place place(sequences, heads, (K + Lanes::rows - 1) / Lanes::rows, Lanes::rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  float S[per_lane];
  RowState<capacity>::load(S, initial_state, state_base, lane, key < K, V);
  NextSegment<Transition, capacity> next;
  const auto read = [&](i64 begin) {
    const int count = int(max(i64(0), min(i64(segment), place.tokens - begin)));
    const i64 token = (place.first + begin) * heads + place.head;
    next.read_factors(in, token * K + place.row_begin, i64(heads) * K, count, K - place.row_begin);
    next.v.read(v + token * V, i64(heads) * V, count, V);
    next.reads.read(reads + token * V, i64(heads) * V, count, V);
    next.d_o.read(d_o + token * V, i64(heads) * V, count, V);
  };
  read(0);
#pragma unroll 1
  for (i64 begin = 0; begin < place.tokens; begin += segment) {
    next.write_factors(now), next.v.write(now.values), next.reads.write(now.reads),
        next.d_o.write(now.cotangents);
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
      advance<capacity>(now, step, row, lane, S);
      float do_t[per_lane];
      Lanes::load(now.cotangents[step], lane, do_t);
      sum[step] = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) sum[step] = fused(do_t[i], S[i], sum[step]);
    }
    const float result = sum_over_lanes<lanes>(sum, lane);
    const i64 step = lane / (lanes / 8);
    if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K)
      dq[((place.first + begin + step) * heads + place.head) * K + key] = Format::encode(result * scale);
    __syncthreads();
  }
}

// Last token first, G_t as in scan_columns_back and S_t again from what was kept:
//   dk_t = G_t v_t              de_t = e_t rowsum(S_{t-1} (.) G_t)
//   dr_t = S_{t-1} pulls_t      dw_t = G_t reads_t
// of key, decay, reader and writer; dinitial_state = G_0 (or null: not asked for). pulls [token, H, V] fp32.
template <class Transition, int capacity>
__device__ __forceinline__ void factors(
    const typename Transition::Inputs& in, const typename Transition::Format::Bits* q,
    const typename Transition::Format::Bits* v, const float* reads,
    const typename Transition::Format::Bits* d_o, const float* pulls, const float* dfinal_state,
    const float* states, typename Transition::Format::Bits* d_key, typename Transition::Gate::Bits* d_decay,
    typename Transition::Format::Bits* d_reader, typename Transition::Format::Bits* d_writer,
    float* dinitial_state, const i64* sequences, float scale, int heads, int K, int V) {
  using Format = typename Transition::Format;
  using Lanes = Columns<capacity>;
  constexpr int per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ Segment<capacity> now;
  __shared__ float kept[segments - 1][per_lane][128];  // S at the segments' starts; a lane reads only its own
  const Place place(sequences, heads, (K + Lanes::rows - 1) / Lanes::rows, Lanes::rows);
  const int lane = int(threadIdx.x) % lanes, row = int(threadIdx.x) / lanes, key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  float G[per_lane], S[per_lane], before[segment][per_lane];
  RowState<capacity>::load(G, dfinal_state, state_base, lane, key < K, V);
  // What tokens that are not there write is -0, which leaves also a G of -0 as it is: -0 is missing from do
  // (scale q do) and from the pulls (reader pull).
  const typename Format::Bits nothing = Format::encode(scale < 0.0f ? 0.0f : -0.0f);
  NextSegment<Transition, capacity> next;
  const auto read = [&](i64 begin, bool all) {
    const int count = begin < 0 ? 0 : int(max(i64(0), min(i64(segment), place.tokens - begin)));
    const i64 token = (place.first + begin) * heads + place.head;
    const int channels = K - place.row_begin;
    next.read_factors(in, token * K + place.row_begin, i64(heads) * K, count, channels);
    next.v.read(v + token * V, i64(heads) * V, count, V);
    next.reads.read(reads + token * V, i64(heads) * V, count, V);
    if (!all) return;
    next.q.read(q + token * K + place.row_begin, i64(heads) * K, count, channels);
    next.d_o.read(d_o + token * V, i64(heads) * V, count, V, nothing);
    next.pulls.read(pulls + token * V, i64(heads) * V, count, V, -0.0f);
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
      next.write_factors(now), next.v.write(now.values), next.reads.write(now.reads);
      __syncthreads();
      read(chunk_begin + (at + 1) * segment, false);
#pragma unroll
      for (int step = 0; step < segment; ++step) advance<capacity>(now, step, row, lane, S);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) kept[at][i][threadIdx.x] = S[i];
      __syncthreads();
    }
    read(chunk_begin + (live_segments - 1) * segment, true);
#pragma unroll 1
    for (int at = live_segments - 1; at >= 0; --at) {
      const i64 begin = chunk_begin + at * segment;
      next.write_factors(now), next.q.write(now.queries), next.v.write(now.values),
          next.reads.write(now.reads), next.d_o.write(now.cotangents), next.pulls.write(now.pulls);
      __syncthreads();
      if (at > 0) read(begin - segment, true);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) S[i] = at > 0 ? kept[at - 1][i][threadIdx.x] : start[i];
#pragma unroll
      for (int step = 0; step < segment; ++step) {
#pragma unroll
        for (int i = 0; i < per_lane; ++i) before[step][i] = S[i];
        advance<capacity>(now, step, row, lane, S);
      }
      FactorSums sums;
      step_back(now, row, lane, scale, before, G, sums);
      const float dk = sum_over_lanes<lanes>(sums.key, lane), de = sum_over_lanes<lanes>(sums.decay, lane),
                  dr = sum_over_lanes<lanes>(sums.reader, lane),
                  dw = sum_over_lanes<lanes>(sums.writer, lane);
      const int step = lane / (lanes / 8);
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K) {
        const i64 to = ((place.first + begin + step) * heads + place.head) * K + key;
        d_key[to] = Format::encode(dk);
        d_decay[to] = Transition::Gate::encode(now.decays[step][row] * de);
        d_reader[to] = Format::encode(dr);
        d_writer[to] = Format::encode(dw);
      }
      __syncthreads();
    }
  }
  if (dinitial_state == nullptr || key >= K) return;
#pragma unroll
  for (int i = 0; i < per_lane; ++i)
    if (const int value = Lanes::of(lane, i); value < V) dinitial_state[state_base + value] = G[i];
}

}  // namespace rows
