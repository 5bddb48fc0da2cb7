// Gradients token by token, the rows of keys: S forward and G = dL/dS backward over a segment of tokens.
#pragma once
#include "recurrent_lanes.cuh"

// A segment's tokens in shared memory. Arrays of their own: one struct of all costs up to 22 registers.
template <int capacity>
struct RowSegment {
  const float (*queries)[Columns<capacity>::rows], (*keys)[Columns<capacity>::rows];
  const float (*values)[capacity], (*cotangents)[capacity];
};

// One row of S and of G, and how both go over a segment. Decays: at(step, row) forward, and backward at(step,
// row, live), where `live` tokens are there. `learned`: S is taken along, for the gradient of the decays.
// Exclusive readouts: G_t is of later tokens only.
template <int capacity, class Decays, bool learned, bool exclusive>
struct RowScan {
  using Lanes = Columns<capacity>;
  static constexpr int per_lane = Lanes::per_lane;
  const RowSegment<capacity> x;
  const Decays decays;
  int row, lane;
  float S[per_lane], G[per_lane];
  float before[segment][per_lane];  // S before each token

  // S over the segment, first token first.
  __device__ __forceinline__ void step_states(bool remember) {
#pragma unroll
    for (int step = 0; step < segment; ++step) {
      const float k_t = x.keys[step][row], e_t = decays.at(step, row);
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
      const float q_t = x.queries[step][row] * (step < live ? scale : -0.0f),
                  e_t = decays.at(step, row, live);
      float v_t[per_lane], do_t[per_lane];
      Lanes::load(x.values[step], lane, v_t);
      Lanes::load(x.cotangents[step], lane, do_t);
      dk_sum[step] = dg_sum[step] = 0.0f;
      if constexpr (exclusive) own_sum[step] = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        if constexpr (!exclusive) G[i] = fused(q_t, do_t[i], G[i]);
        dk_sum[step] = fused(v_t[i], G[i], dk_sum[step]);
        if constexpr (learned) dg_sum[step] = fused(before[step][i], G[i], dg_sum[step]);
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
