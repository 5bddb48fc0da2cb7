// After chunk_state.cuh (gla, rwkv6, gsa): dq, dk, dg of a chunk. A block owns a chunk, a head and 64 key
// channels, 16 per warp, all 64 tokens. M_ij = scale do_i . v_j, D is the gradient of S at the chunk's end:
//   dq_i = e^{G_i} scale S do_i   + sum_{j<=i} M_ij k_j e^{G_i - G_j}
//   dk_j = e^{L - G_j} D v_j      + sum_{i>=j} M_ij q_i e^{G_i - G_j}
//   dg_t = e^L rowsum(S (.) D)    + sum_{i>=t} q_i e^{G_i} scale (S do_i) + sum_{j<t} k_j e^{L - G_j} (D v_j)
//          + sum_{j<t<=i} q_i e^{G_i - G_j} k_j M_ij
// Pairs are split as in chunk_scores.cuh: with s the highest bit in which i and j differ, i lies in the
// second and j in the first half of an aligned block of 2 s rows, and with
//   x_i = q_i e^{F_s[i]},   x_j = k_j e^{B_s[j]}
//   z_i = sum_{j first} M_ij x_j,   z_j = sum_{i second} M_ij x_i
// are one product, which gives dq_i its e^{F_s[i]} z_i and dk_j its e^{B_s[j]} z_j, and x z is what the
// rows's pairs contribute to dg: a second half to all its rows from its start to i, a first half to those
// after j. All terms of dg are products along paths; nothing is ever the difference of larger terms.
//
// Exclusive readouts (rwkv6): G_{i-1} in place of G_i, j < t < i in dg, and for j = i the bonus u in place of
// the weight 1, whose gradient is the sum of M_ii q_i k_i.
#pragma once
#include "chunk_state.cuh"
#include "pair_gradients.cuh"

// Tiles of 16 tokens of a warp: all of the chunk's, or of bf16 those of one half. Threads of a block.
template <class Format, class Pass, bool of_keys = true>
constexpr int key_tiles =
    of_keys && !Pass::exclusive ? 4 / assay::channel::KeysLayout::halves(sizes_of_format<Format>) : 4;
template <class Format, class Pass, bool of_keys = true>
constexpr int key_threads = 512 / key_tiles<Format, Pass, of_keys>;

// states, adjoints: S and D as plain matrices (PlainStates). u [H, K] and du [chunk][H][K], this chunk's part
// of the bonus's gradient, where exclusive; else null. `Gradients` is what becomes of the gradients:
// GradientTensors, or another of its form; where it takes none of keys, q and adjoints are not read.
template <class Format, class Gate, class Pass, class Query = Format, class Gradients>
__device__ __forceinline__ void chunk_keys(const typename Query::Bits* q, const typename Format::Bits* k,
                                           const typename Format::Bits* v, const typename Gate::Bits* g,
                                           const typename Format::Bits* u, const typename Format::Bits* d_o,
                                           const typename StateOf<Format>::Type::Bits* states,
                                           const typename StateOf<Format>::Type::Bits* adjoints,
                                           const Gradients& to, float* du, const i64* chunks, float scale,
                                           Shape shape) {
  using Shared = KeyShared<Format, Gate, Query>;
  extern __shared__ __align__(16) char base[];
  const Shared shared{base};
  constexpr int tiles = key_tiles<Format, Pass, Gradients::of_keys>, threads = 512 / tiles;
  constexpr bool alone = tiles == 4;
  const int lane = int(threadIdx.x) & 31, warp = (int(threadIdx.x) >> 5) & 3;  // of 16 key channels
  const int half = alone ? 0 : int(threadIdx.x) >> 7;                          // of the tokens
  const int K = shape.key_channels, V = shape.value_channels;
  const u32 key_blocks = u32(K + 63) / 64, heads = u32(shape.heads), block = blockIdx.x / key_blocks;
  const int key_begin = int(blockIdx.x - block * key_blocks) * 64, chunk = int(block / heads),
            head = int(block - u32(chunk) * heads);
  const i64 first = chunks[2 * i64(chunk)];
  const int rows = int(chunks[2 * i64(chunk) + 1]);
  const i64 token = first * shape.heads + head;
  const i64 keys_at = token * K + key_begin, values_at = token * V;
  const int padded_keys = shape.key_groups() * 16, padded_values = shape.value_groups() * 16;
  const i64 state_at = (i64(chunk) * shape.heads + head) * padded_values * padded_keys + key_begin;

  const KeyPlace place{keys_at, i64(shape.heads) * K, rows, K - key_begin, shape.vector};
  using Inputs = KeyInputs<Format, Gate, Query, Gradients, threads>;
  const Inputs in{q + keys_at,
                  k + keys_at,
                  g == nullptr ? nullptr : g + keys_at,
                  d_o + values_at,
                  v + values_at,
                  states + state_at,
                  adjoints + state_at,
                  place,
                  i64(shape.heads) * V,
                  V,
                  padded_values,
                  padded_keys,
                  padded_keys - key_begin};

  using Channels = KeyGradients<Format, Gate, Pass, Query, Gradients, tiles>;
  typename Channels::Contractions contractions;
  contractions.clear();
  Channels gradients(shared, contractions, to, place, warp, half, lane);
  static_assert(alone || Shared::early, "gates are there before the first contraction");
  in.load_values(shared, 0);
  if (Shared::early) in.load_keys(shared);
  commit_copies();
  for (int begin = 0; begin < V; begin += 64) {
    wait_copies<0>();
    __syncthreads();
    if (!alone && begin == 0) gradients.load_totals(), gradients.share_totals();
    const int groups = min(4, shape.value_groups() - (begin >> 4));
    contractions.add_groups(shared, groups, warp, half, lane);
    __syncthreads();  // everyone is done with these value channels
    if (begin + 64 < V) {
      in.load_values(shared, begin + 64);
      commit_copies();
    }
  }
  if (!Shared::early) {
    in.load_keys(shared);
    commit_copies();
  }
  contractions.store_products(shared, scale, warp, half, lane);
  if constexpr (Gradients::of_keys)
    for (float& carried : contractions.carried) carried = Channels::over_lanes(carried);
  if constexpr (alone) {
    wait_copies<0>();
    __syncthreads();
    gradients.load_totals();
  } else {
    gradients.take_totals();
  }
  const int first_key = key_begin + 16 * warp + (lane >> 2);  // the lane's channels: this one and 8 further
  if constexpr (Pass::exclusive)
    for (int i = 0; i < 2; ++i)
      if (first_key + 8 * i < K) gradients.bonus[i] = Format::decode(u[i64(head) * K + first_key + 8 * i]);
  if constexpr (alone)
    gradients.of_all_tiles(scale);
  else
    gradients.of_half_the_tiles(scale);
  if constexpr (Pass::exclusive)
    for (int i = 0; i < 2; ++i) {
      const float sum = gradients.over_lanes(gradients.bonus_sum[i]);
      if ((lane & 3) == 0 && first_key + 8 * i < K)
        du[(i64(chunk) * shape.heads + head) * K + first_key + 8 * i] = sum;
    }
  to.finish(shared, place);
}
