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
// a chunk, a head and GradientLayout::keys key channels, a warp 16 of them and 16 tokens.
#pragma once
#include "tile_gradients.cuh"

namespace general {

//   key: the block's first key channel
template <class Format, class Gate>
__device__ __forceinline__ void chunk_gradients(const GradientInputs<Format, Gate>& in, int key,
                                                const GradientsTo<Format, Gate>& to, float scale,
                                                char* base) {
  using Shared = GradientShared<Format, Gate>;
  const Shared shared{base};
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  constexpr int groups = Shared::layout.keys / 16, values = Shared::layout.values;
  const int group = warp % groups, tile = warp / groups;
  const GradientLoads<Format, Gate> loads{in, key};
  loads.load_values(shared, 0), loads.load_states(shared, 0);
  if (Shared::layout.early) loads.load_keys(shared);
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
      contractions.add(shared, 16 * value, 16 * group, 16 * tile, lane);
  }
  __syncthreads();  // everyone is done with the value channels
  if (!Shared::layout.early) {
    loads.load_keys(shared);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
  }
  for (float& carried : contractions.carried) carried = TileGradients<Format, Gate>::over_lanes(carried);
  TileGradients<Format, Gate> gradients(shared, contractions, group, tile, lane);
  gradients.across_chunks(scale);
  __syncthreads();
  gradients.within_chunk(to);
  to.finish(shared);
}

}  // namespace general
