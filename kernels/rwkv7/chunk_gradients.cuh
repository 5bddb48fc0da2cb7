// dr, dw, dk, da and db of a chunk of rwkv7 on tensor cores, after both scans (chunk_backward.cu). With u_j =
// S_{j-1}^T a_j what a token reads and z_i = G_i^T b_i what it pulls, the sums over value channels
//   M_ij = scale do_i . v_j   N_ij = scale do_i . u_j, j <= i    P_ij = z_i . v_j   Q_ij = z_i . u_j, j < i
// weigh the chunk's pairs of tokens:
//   dr_i = e^{G_i} scale S do_i + sum_{j<=i} e^{G_i - G_j} (M_ij k_j + N_ij b_j)
//   da_i = e^{E_i} S z_i        + sum_{j<i}  e^{E_i - G_j} (P_ij k_j + Q_ij b_j)
//   dk_j = e^{L - G_j} D v_j    + sum_{i>=j} M_ij r_i e^{G_i - G_j} + sum_{i>j} P_ij a_i e^{E_i - G_j}
//   db_j = e^{L - G_j} D u_j    + sum_{i>=j} N_ij r_i e^{G_i - G_j} + sum_{i>j} Q_ij a_i e^{E_i - G_j}
// and dw_t sums what passes its decay. Pairs are split where the bits of i and j first differ
// (channel/chunk_scores.cuh): with x_i = r_i e^{F}, y_i = a_i e^{F'}, F' without the row's own decay, on the
// later and x_j = k_j e^{B}, y_j = b_j e^{B} on the earlier side,
//   z  = M x + C y, C_ij = N_ij, C_ji = P_ij, is what dr_i and dk_j take, and z' = Q y + C^T x da_i and db_j;
// x z + y z' is what the row's pairs contribute to dw. No term is the difference of larger ones. A block owns
// a chunk, a head and GradientLayout::keys key channels, two warps 16 of them, each of its 32 tokens.
#pragma once
#include "half_gradients.cuh"

namespace general {

template <int half, class Format, class Gate>
__device__ __forceinline__ void half_gradients(const GradientShared<Format, Gate>& shared,
                                               ChannelContractions<Format, Gate>& contractions,
                                               const GradientsTo<Format, Gate>& to, float scale, int group,
                                               int lane) {
  HalfGradients<Format, Gate, half> gradients(shared, contractions, group, lane);
  gradients.template across_chunks<0>(scale);
  gradients.template across_chunks<1>(scale);
  __syncthreads();
  gradients.template within_chunk<half>(to);
  gradients.template within_chunk<1 - half>(to);
}

//   key: the block's first key channel
template <class Format, class Gate>
__device__ __forceinline__ void chunk_gradients(const GradientInputs<Format, Gate>& in, int key,
                                                const GradientsTo<Format, Gate>& to, float scale,
                                                char* base) {
  using Shared = GradientShared<Format, Gate>;
  const Shared shared{base};
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  constexpr int groups = Shared::layout.keys / 16, values = Shared::layout.values;
  const int group = warp % groups, half = warp / groups;
  const GradientLoads<Format, Gate> loads{in, key};
  loads.load_values(shared, 0), loads.load_states(shared, 0);
  commit_copies();
  contract_pairs(loads, shared, scale, warp, lane);

  ChannelContractions<Format, Gate> contractions;
  contractions.clear();
  for (int begin = 0; begin < in.shape.value_channels; begin += values) {
    if (in.shape.value_channels > values) {
      __syncthreads();  // everyone is done with the value channels before
      loads.load_values(shared, begin), loads.load_states(shared, begin);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
    }
    const int value_groups = min(values / 16, in.shape.value_groups() - (begin >> 4));
#pragma unroll 1
    for (int value = 0; value < value_groups; ++value)
      contractions.add(shared, 16 * value, 16 * group, 2 * half, lane);
  }
  __syncthreads();  // everyone is done with the value channels
  loads.load_keys(shared);
  commit_copies();
  for (float& carried : contractions.carried) carried = HalfGradients<Format, Gate, 0>::over_lanes(carried);
  wait_copies<0>();
  __syncthreads();
  if (half == 0)
    half_gradients<0>(shared, contractions, to, scale, group, lane);
  else
    half_gradients<1>(shared, contractions, to, scale, group, lane);
  to.finish(shared);
}

}  // namespace general
