// Gradients token by token, each chunk by itself: S again from its start and G again from its end, where the
// two scans kept them:
//   dk_t = G_t v_t     dg_t = e^{g_t} rowsum(S_{t-1} (.) G_t)
// A block's rows are key channels, its columns value channels. Exclusive also, with
// c_t = scale q_t (do_t . v_t),
//   dk_t = G_t v_t + u c_t          du = sum_t k_t c_t, one sum per chunk
#pragma once
#include "../device/recurrent_rows.cuh"
#include "recurrent_queries.cuh"

// Blocks for which a multiprocessor has registers with hardly any of them spilled.
constexpr int blocks_of_keys(int capacity, bool exclusive) {
  return capacity > 128 ? 2 : capacity > 64 || exclusive ? 3 : 4;
}

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
                                     const float* states, const float* adjoints,
                                     typename KeyGradient::Bits* dk, typename GateGradient::Bits* dg,
                                     float* du, const i64* chunks, float scale, int heads, int K, int V) {
  using Lanes = Columns<capacity>;
  using Spread = SpreadLanes<capacity>;
  constexpr int rows = Lanes::rows, per_lane = Lanes::per_lane, lanes = Lanes::lanes;
  __shared__ __align__(16) float queries[segment][rows], keys[segment][rows], decays[segment][rows],
      values[segment][capacity], cotangents[segment][capacity];
  constexpr int first_kept = capacity > 128 ? 1 : 0;  // of long rows all but the start have a place
  __shared__ float kept_states[segments - first_kept][per_lane][128];
  KeptStates<per_lane> kept{kept_states};
  const ChunkPlace place(chunks, heads, blocks_of(K, rows), rows);
  const int lane = Spread::lane(), row = Spread::row(), key = place.row_begin + row;
  const i64 state_base = ((place.slot * heads + place.head) * K + key) * capacity;

  RowScan<capacity, RowDecays<rows>, true, exclusive> scan{
      {queries, keys, values, cotangents}, {decays}, row, lane};
  const auto load_start = [&] { load_kept_row<Lanes>(scan.S, states + state_base, key < K, V, lane); };
  load_start();
  if constexpr (first_kept == 0) kept.keep(1, scan.S);
  load_kept_row<Lanes>(scan.G, adjoints + state_base, key < K, V, lane);
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

  const int live_segments = live_segments_of(place.tokens);
  float bonus_sum = 0.0f;  // of the lane's step of each segment
  if (live_segments > 1) read(0, segment, false);
#pragma unroll 1
  for (int at = 1; at < live_segments; ++at) {
    next_k.write(keys), next_g.write_decays(decays), next_v.write(values);
    __syncthreads();
    if (at + 1 < live_segments) read(at * segment, segment, false);
    scan.step_states(false);
    kept.keep(at + 1 - first_kept, scan.S);
    __syncthreads();
  }
  const i64 last = (live_segments - 1) * segment;
  read(last, tokens_of_segment(place.tokens - last), true);
#pragma unroll 1
  for (int at = live_segments - 1; at >= 0; --at) {
    const i64 begin = at * segment;
    next_q.write(queries), next_k.write(keys), next_g.write_decays(decays), next_v.write(values),
        next_do.write(cotangents);
    __syncthreads();
    if (at > 0) read(begin - segment, segment, true);
    if (at >= first_kept)
      kept.restore(at + 1 - first_kept, scan.S);
    else
      load_start();
    scan.step_states(true);
    float dk_sum[segment], dg_sum[segment], own_sum[exclusive ? segment : 1];
    scan.step_gradients(tokens_of_segment(place.tokens - begin), scale, dk_sum, dg_sum, own_sum);
    float dk_t = sum_over_lanes<lanes, Spread::apart>(dk_sum, lane);
    const float dg_t = sum_over_lanes<lanes, Spread::apart>(dg_sum, lane);
    const int step = lane / (lanes / 8);
    if constexpr (exclusive) {
      const float own = sum_over_lanes<lanes, Spread::apart>(own_sum, lane);
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
      bonus_sum = bonus_sum + __shfl_xor_sync(0xffffffffu, bonus_sum, mask * Spread::apart);
    if (lane == 0 && key < K) du[(place.slot * heads + place.head) * K + key] = bonus_sum;
  }
}
