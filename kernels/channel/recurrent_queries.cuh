// Gradients token by token, first scan: S from the first token on, and with it
//   inclusive: dq_t = scale S_t do_t          exclusive: dq_t = scale (S_{t-1} + diag(u) k_t v_t^T) do_t
// A block's rows are key channels, several per lane, its columns value channels. S at every chunk's start is
// kept for the keys.
#pragma once
#include "../device/recurrent_lanes.cuh"

// u [H, K] where exclusive, else null; states [chunk][H][K][capacity] and final_state [N, H, K, V] or null;
// all else as in fused_recurrent_backward.cu. `block`: which of the grid described there.
template <class Format, class Gate, int capacity, bool exclusive, class QueryGradient = Format>
__device__ __forceinline__ void queries(const typename Format::Bits* k, const typename Format::Bits* v,
                                        const typename Gate::Bits* g, const typename Format::Bits* u,
                                        const typename Format::Bits* d_o, const float* initial_state,
                                        typename QueryGradient::Bits* dq, float* states, const i64* sequences,
                                        float scale, int heads, int K, int V, float* final_state = nullptr,
                                        int block = int(blockIdx.x)) {
  using Lanes = Columns<capacity>;
  using Spread = SpreadLanes<capacity>;
  constexpr int held = Lanes::held, rows = Lanes::scan_rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  constexpr int at_once = places_for_tokens<capacity>;
  __shared__ __align__(16) float all_keys[at_once][segment][rows], all_decays[at_once][segment][rows],
      all_values[at_once][segment][capacity], all_cotangents[at_once][segment][capacity];
  const Place place(sequences, heads, blocks_of(K, rows), rows, block);
  const int lane = Spread::lane(), row = held * Spread::row(), key = place.row_begin + row;
  const i64 state_base = ((i64(place.sequence) * heads + place.head) * K + key) * V;

  float S[held][per_lane], bonus[held];
#pragma unroll
  for (int r = 0; r < held; ++r) {
    load_row<Lanes>(S[r], initial_state, state_base + i64(r) * V, key + r < K, V, lane);
    bonus[r] = exclusive && key + r < K ? Format::decode(u[i64(place.head) * K + key + r]) : 0.0f;
  }
  // k v of tokens that are not there is -0, which leaves also an S of -0 as it is.
  const typename Format::Bits nothing = Format::encode(-0.0f);
  Slab<Format, rows, true> next_k;
  Slab<Gate, rows, true> next_g;
  Slab<Format, capacity, true> next_v, next_do;
  const auto read = [&](i64 begin) {
    const int count = tokens_of_segment(place.tokens - begin);
    const i64 token = (place.first + begin) * heads + place.head;
    next_k.read(k + token * K + place.row_begin, i64(heads) * K, count, K - place.row_begin);
    next_g.read(g + token * K + place.row_begin, i64(heads) * K, g == nullptr ? 0 : count,
                K - place.row_begin);
    next_v.read(v + token * V, i64(heads) * V, count, V, nothing);
    next_do.read(d_o + token * V, i64(heads) * V, count, V);
  };
  const auto write = [&](i64 begin) {
    const int which = int(begin / segment) % at_once;
    next_k.write(all_keys[which]), next_g.write_decays(all_decays[which]);
    next_v.write(all_values[which]), next_do.write(all_cotangents[which]);
    if (begin + segment < place.tokens) read(begin + segment);
  };
  const auto compute = [&](i64 begin) {
    const int which = int(begin / segment) % at_once;
    const float(*keys)[rows] = all_keys[which], (*decays)[rows] = all_decays[which];
    const float(*values)[capacity] = all_values[which], (*cotangents)[capacity] = all_cotangents[which];
    if (states != nullptr && begin % chunk == 0) {
      float* to = states + (((place.slot + (begin >> chunk_bits)) * heads + place.head) * K + key) * capacity;
#pragma unroll
      for (int r = 0; r < held; ++r)
        if (key + r < K) keep_row<Lanes>(to + r * capacity, lane, S[r]);
    }
    float sum[held][segment];
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      float v_t[per_lane], do_t[per_lane];
      Lanes::load(values[step], lane, v_t);
      Lanes::load(cotangents[step], lane, do_t);
#pragma unroll
      for (int r = 0; r < held; ++r) {
        const float k_t = keys[step][row + r], e_t = decays[step][row + r];
        sum[r][step] = 0.0f;
#pragma unroll
        for (int i = 0; i < per_lane; ++i) {
          float& s = S[r][i];
          const float write = k_t * v_t[i];
          if constexpr (exclusive) sum[r][step] = fused(do_t[i], fused(bonus[r], write, s), sum[r][step]);
          s = fused(e_t, s, write);
          if constexpr (!exclusive) sum[r][step] = fused(do_t[i], s, sum[r][step]);
        }
      }
    }
    const i64 step = lane / (lanes / 8);
#pragma unroll
    for (int r = 0; r < held; ++r) {
      const float result = sum_over_lanes<lanes, Spread::apart>(sum[r], lane);
      if (lane % (lanes / 8) == 0 && begin + step < place.tokens && key + r < K)
        dq[((place.first + begin + step) * heads + place.head) * K + key + r] =
            QueryGradient::encode(result * scale);
    }
  };

  const bool loads = !computes_in_scan(), computes = !loads && first_row_of_warp(place.row_begin, rows) < K;
  if (loads && place.tokens > 0) read(0), write(0);
#pragma unroll 1
  for (i64 begin = 0; begin < place.tokens; begin += segment) {
    __syncthreads();
    if (computes) compute(begin);
    if constexpr (at_once == 1) __syncthreads();
    if (loads && begin + segment < place.tokens) write(begin + segment);
  }
  if (!computes) return;
#pragma unroll
  for (int r = 0; r < held; ++r)
    store_row<Lanes>(final_state, state_base + i64(r) * V, key + r < K, V, lane, S[r]);
}
