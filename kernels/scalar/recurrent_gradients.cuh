// Gradients of the recurrence with one decay e_t per token and head, one token after the other, fp32
// throughout, three scans:
//   queries  S_t = e_t S_{t-1} + k_t v_t^T;  dq_t = scale S_t do_t; learned gates: S at every 64th token is
//            kept
//   values   G_t = e_{t+1} G_{t+1} + scale q_t do_t^T, last token first;  dv_t = G_t^T k_t
//   keys     G_t again;  dk_t = G_t v_t,  dinitial_state = e_1 G_1; learned gates: S_t again from what was
//            kept,  <S_{t-1}, G_t> of the block's key channels
// A block owns rows of the state, or of its transpose, as gla's scans do (recurrent_lanes.cuh).
#pragma once
#include "../device/recurrent_rows.cuh"
#include "learned_gates.cuh"

// The decays of eight tokens. Gates of tokens lie in shared memory while they are used, where tokens that are
// not there do not decay; those of heads are one number, and never end: of `live` tokens none but these
// decay.
template <class Gate>
struct SegmentDecays {
  const typename Gate::Bits* gates;
  typename Gate::Bits bits = 0;

  __device__ SegmentDecays(const typename Gate::Bits* gates, int) : gates(gates) {}
  // `first`: place of the first token and the head in [token, H].
  __device__ __forceinline__ void read(i64 first, int heads, int tokens) {
    const int token = int(threadIdx.x);
    bits = 0;
    if (token < tokens) bits = gates[first + token * i64(heads)];
  }
  __device__ __forceinline__ void write() const {
    if (int(threadIdx.x) < segment) shared()[threadIdx.x] = decay_factor(Gate::decode(bits));
  }
  __device__ __forceinline__ float at(int step, int) const { return shared()[step]; }
  __device__ __forceinline__ float at(int step, int row, int) const { return at(step, row); }

 private:
  static __device__ __forceinline__ float* shared() {
    __shared__ float decays[segment];
    return decays;
  }
};
template <>
struct SegmentDecays<HeadGate> {
  const float decay;

  __device__ SegmentDecays(const float* gates, int head) : decay(decay_factor(gates[head])) {}
  __device__ __forceinline__ void read(i64, int, int) {}
  __device__ __forceinline__ void write() const {}
  __device__ __forceinline__ float at(int, int) const { return decay; }
  __device__ __forceinline__ float at(int step, int, int live) const { return step < live ? decay : 1.0f; }
};
template <>
struct SegmentDecays<FixedHeadGate> : SegmentDecays<HeadGate> {
  using SegmentDecays<HeadGate>::SegmentDecays;
};
template <>
struct SegmentDecays<NoGate> {
  __device__ SegmentDecays(const float*, int) {}
  __device__ __forceinline__ void read(i64, int, int) {}
  __device__ __forceinline__ void write() const {}
  __device__ __forceinline__ float at(int, int, int = 0) const { return 1.0f; }
};

template <class Format, class Gate, int capacity>
__device__ __forceinline__ void query_gradients(const typename Format::Bits* k,
                                                const typename Format::Bits* v,
                                                const typename Gate::Bits* gates,
                                                const typename Format::Bits* d_o, const float* initial_state,
                                                typename Format::Bits* dq, float* states,
                                                const i64* sequences, float scale, int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float keys[segment][rows], values[segment][capacity],
      cotangents[segment][capacity];
  const Place place(sequences, heads, blocks_of(K, rows), rows);
  const int lane = int(threadIdx.x % lanes), row = int(threadIdx.x / lanes), key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  float S[per_lane];
  load_row<Lanes>(S, initial_state, state_base, key < K, V, lane);
  Slab<Format, rows> next_k;
  Slab<Format, capacity> next_v, next_do;
  SegmentDecays<Gate> decays(gates, place.head);
  const auto read = [&](i64 begin) {
    const int count = tokens_of_segment(place.tokens - begin);
    const i64 token = (place.first + begin) * heads + place.head;
    next_k.read(k + token * K + place.row_begin, i64(heads) * K, count, K - place.row_begin);
    decays.read(token, heads, count);
    next_v.read(v + token * V, i64(heads) * V, count, V);
    next_do.read(d_o + token * V, i64(heads) * V, count, V);
  };
  if (place.tokens > 0) read(0);
#pragma unroll 1
  for (i64 begin = 0; begin < place.tokens; begin += segment) {
    next_k.write(keys), decays.write(), next_v.write(values), next_do.write(cotangents);
    __syncthreads();
    if (begin + segment < place.tokens) read(begin + segment);
    if (is_learned<Gate> && begin % chunk == 0 && key < K) {
      float* to = states + (((place.slot + (begin >> chunk_bits)) * heads + place.head) * K + key) * capacity;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) to[Lanes::of(lane, i)] = S[i];
    }
    float sum[segment];
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      const float k_t = keys[step][row], e_t = decays.at(step, row);
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
__device__ __forceinline__ void value_gradients(const typename Format::Bits* q,
                                                const typename Format::Bits* k,
                                                const typename Gate::Bits* gates,
                                                const typename Format::Bits* d_o, const float* dfinal_state,
                                                typename Format::Bits* dv, const i64* sequences, float scale,
                                                int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float queries[segment][capacity], keys[segment][capacity],
      cotangents[segment][rows];
  const Place place(sequences, heads, blocks_of(V, rows), rows);
  const int lane = int(threadIdx.x % lanes), row = int(threadIdx.x / lanes), value = place.row_begin + row;
  const i64 state_base = (i64(place.sequence) * heads + place.head) * K;

  float G[per_lane];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int key = Lanes::of(lane, i);
    const bool live = dfinal_state != nullptr && key < K && value < V;
    G[i] = live ? dfinal_state[(state_base + key) * V + value] : 0.0f;
  }
  Slab<Format, capacity> next_q, next_k;
  Slab<Format, rows> next_do;
  SegmentDecays<Gate> decays(gates, place.head);
  const auto read = [&](i64 begin, int count) {
    const i64 token = (place.first + begin) * heads + place.head;
    next_q.read(q + token * K, i64(heads) * K, count, K);
    next_k.read(k + token * K, i64(heads) * K, count, K);
    decays.read(token, heads, count);
    next_do.read(d_o + token * V + place.row_begin, i64(heads) * V, count, V - place.row_begin);
  };
  const i64 last = multiple_below(place.tokens - 1, segment);
  if (place.tokens > 0) read(last, int(place.tokens - last));
#pragma unroll 1
  for (i64 begin = last; begin >= 0; begin -= segment) {
    next_q.write(queries), next_k.write(keys), decays.write(), next_do.write(cotangents);
    __syncthreads();
    if (begin > 0) read(begin - segment, segment);
    const int live = tokens_of_segment(place.tokens - begin);
    float sum[segment];
#pragma unroll
    for (int step = segment - 1; step >= 0; --step) {
      const float do_t = cotangents[step][row], e_t = decays.at(step, row, live);
      float q_t[per_lane], k_t[per_lane];
      Lanes::load(queries[step], lane, q_t);
      Lanes::load(keys[step], lane, k_t);
      sum[step] = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        G[i] = fused(q_t[i] * scale, do_t, G[i]);
        sum[step] = fused(k_t[i], G[i], sum[step]);
        G[i] = e_t * G[i];
      }
    }
    const float result = sum_over_lanes<lanes>(sum, lane);
    const i64 step = lane / (lanes / 8);
    if (lane % (lanes / 8) == 0 && begin + step < place.tokens && value < V)
      dv[((place.first + begin + step) * heads + place.head) * V + value] = Format::encode(result);
    __syncthreads();
  }
}

// <S_{t-1}, G_t> of a block's rows for the eight tokens of a segment: first of each warp's, then of all.
template <int lanes>
struct BlockProducts {
  float (*of_warps)[4];  // [segment]

  // `sum`: the lane's row, of token lane / (lanes / 8).
  __device__ __forceinline__ void add_warp(float sum, int lane) const {
#pragma unroll
    for (int mask = lanes; mask < 32; mask *= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, mask);
    if ((threadIdx.x & 31) < lanes && lane % (lanes / 8) == 0)
      of_warps[lane / (lanes / 8)][threadIdx.x >> 5] = sum;
  }
  // After a barrier, for token `step` of the segment.
  __device__ __forceinline__ float of_block(int step) const {
    const float* x = of_warps[step];
    return (x[0] + x[1]) + (x[2] + x[3]);
  }
};

// products, of learned gates: [token][H][key blocks].
template <class Format, class Gate, int capacity>
__device__ __forceinline__ void key_gradients(const typename Format::Bits* q, const typename Format::Bits* k,
                                              const typename Format::Bits* v,
                                              const typename Gate::Bits* gates,
                                              const typename Format::Bits* d_o, const float* dfinal_state,
                                              const float* states, typename Format::Bits* dk, float* products,
                                              float* dinitial_state, const i64* sequences, float scale,
                                              int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float queries[segment][rows], keys[segment][rows], values[segment][capacity],
      cotangents[segment][capacity], warp_products[segment][4];
  __shared__ float kept_rows[segments - 1][per_lane][128];
  KeptStates<per_lane> kept{kept_rows};
  const BlockProducts<lanes> block_products{warp_products};
  const Place place(sequences, heads, blocks_of(K, rows), rows);
  const int lane = int(threadIdx.x % lanes), row = int(threadIdx.x / lanes), key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  Slab<Format, rows> next_q, next_k;
  Slab<Format, capacity> next_v, next_do;
  SegmentDecays<Gate> decays(gates, place.head);
  RowScan<capacity, SegmentDecays<Gate>&, is_learned<Gate>, false> scan{
      {queries, keys, values, cotangents}, decays, row, lane};
  load_row<Lanes>(scan.G, dfinal_state, state_base, key < K, V, lane);
  const auto read = [&](i64 begin, int count, bool all) {
    const i64 token = (place.first + begin) * heads + place.head;
    const int channels = K - place.row_begin;
    if constexpr (is_learned<Gate>)
      next_k.read(k + token * K + place.row_begin, i64(heads) * K, count, channels);
    decays.read(token, heads, count);
    next_v.read(v + token * V, i64(heads) * V, count, V);
    if (!all) return;
    next_q.read(q + token * K + place.row_begin, i64(heads) * K, count, channels);
    next_do.read(d_o + token * V, i64(heads) * V, count, V);
  };
#pragma unroll 1
  for (i64 chunk_begin = multiple_below(place.tokens - 1, chunk); chunk_begin >= 0; chunk_begin -= chunk) {
    const int live_segments = live_segments_of(place.tokens - chunk_begin);
    float start[per_lane];
    if constexpr (is_learned<Gate>) {
      const float* from =
          states + (((place.slot + (chunk_begin >> chunk_bits)) * heads + place.head) * K + key) * capacity;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) scan.S[i] = start[i] = key < K ? from[Lanes::of(lane, i)] : 0.0f;
      if (live_segments > 1) read(chunk_begin, segment, false);
#pragma unroll 1
      for (int at = 0; at + 1 < live_segments; ++at) {
        next_k.write(keys), decays.write(), next_v.write(values);
        __syncthreads();
        if (at + 2 < live_segments) read(chunk_begin + (at + 1) * segment, segment, false);
        scan.step_states(false);
        kept.keep(at + 1, scan.S);
        __syncthreads();
      }
    }
    const i64 last = chunk_begin + (live_segments - 1) * segment;
    read(last, tokens_of_segment(place.tokens - last), true);
#pragma unroll 1
    for (int at = live_segments - 1; at >= 0; --at) {
      const i64 begin = chunk_begin + at * segment;
      if constexpr (is_learned<Gate>) next_k.write(keys);
      next_q.write(queries), decays.write(), next_v.write(values), next_do.write(cotangents);
      __syncthreads();
      if (at > 0) read(begin - segment, segment, true);
      if constexpr (is_learned<Gate>) {
        if (at > 0) {
          kept.restore(at, scan.S);
        } else {
#pragma unroll
          for (int i = 0; i < per_lane; ++i) scan.S[i] = start[i];
        }
        scan.step_states(true);
      }
      float dk_sum[segment], product[segment], none[1];
      scan.step_gradients(tokens_of_segment(place.tokens - begin), scale, dk_sum, product, none);
      const float dk_t = sum_over_lanes<lanes>(dk_sum, lane);
      const int step = lane / (lanes / 8);
      const i64 token = (place.first + begin + step) * heads + place.head;
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key < K)
        dk[token * K + key] = Format::encode(dk_t);
      if constexpr (is_learned<Gate>) block_products.add_warp(sum_over_lanes<lanes>(product, lane), lane);
      __syncthreads();
      if constexpr (is_learned<Gate>)
        if (int(threadIdx.x) < segment && begin + int(threadIdx.x) < place.tokens)
          products[((place.first + begin + int(threadIdx.x)) * heads + place.head) * blocks_of(K, rows) +
                   place.row_begin / rows] = block_products.of_block(int(threadIdx.x));
    }
  }
  store_row<Lanes>(dinitial_state, state_base, key < K, V, lane, scan.G);
}
