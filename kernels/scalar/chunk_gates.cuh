// The gradient of learned gates (gate_terms.cuh) where dq, dk and dv were made without it (hopper_terms.cuh):
// a block owns one chunk and one head, makes P anew and adds what those blocks left.
#pragma once
#include "chunk_gradients.cuh"
#include "hopper_layout.h"

// A thread's share of <S, D>, of `pieces` pieces of 16 bytes: each is added by itself, so that sums are less
// deep.
__device__ __forceinline__ float share_of_product(const uint4* states, const uint4* adjoints, int pieces) {
  float sum = 0.0f;
#pragma unroll 4
  for (int i = int(threadIdx.x); i < pieces; i += 128) {
    const uint4 s = states[i], d = adjoints[i];
    const u32 of_s[4] = {s.x, s.y, s.z, s.w}, of_d[4] = {d.x, d.y, d.z, d.w};
    float piece = 0.0f;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const Pair<Bf16> x{of_s[n]}, y{of_d[n]};
      piece = fused(x.low(), y.low(), piece);
      piece = fused(x.high(), y.high(), piece);
    }
    sum = sum + piece;
  }
  return sum;
}

// states, adjoints: as HopperTerms have them; query_dots, key_dots [H][ceil(K/64)][tokens]: q_i . dq_i and
// k_j . dk_j by blocks of 64 key channels.
template <class Gate>
__device__ __forceinline__ void chunk_gates(const Bf16::Bits* q, const Bf16::Bits* k, const Bf16::Bits* v,
                                            const typename Gate::Bits* gates, const Bf16::Bits* d_o,
                                            const uint4* states, const uint4* adjoints,
                                            const float* query_dots, const float* key_dots,
                                            typename Gate::Bits* gate_gradients, const i64* chunks,
                                            i64 tokens, float scale, Shape shape) {
  using Gradients = ChunkGradients<Bf16, Gate>;
  extern __shared__ __align__(16) char base[];
  __shared__ GradientDecays decays;
  __shared__ GateTerms gate_terms;

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int head = int(blockIdx.x) % shape.heads, chunk = int(blockIdx.x) / shape.heads;
  const i64 first = chunks[2 * i64(chunk)];
  const int rows = int(chunks[2 * i64(chunk) + 1]);
  const i64 token = first * shape.heads + head;
  const i64 keys_at = token * shape.key_channels, values_at = token * shape.value_channels;
  GradientTiles<Bf16> tiles{q + keys_at, k + keys_at, v + values_at, d_o + values_at, nullptr, nullptr,
                            shape,       rows,        base};
  const Gradients gradients{tiles, decays, gate_terms, true, scale, warp, lane, rows - 16 * warp};

  float y[2] = {0.0f, 0.0f};  // ahead of everything: their sums take longest
  if (warp == 0) load_gates<Gate>(y, gates, first, rows, head, shape.heads, lane);
  tiles.begin_inputs();
  if (warp == 0) decays.fill(y, lane);
  const int blocks = tiles.key_steps(), t = int(threadIdx.x);
  const int pieces = blocks * tiles.value_steps() * assay::scalar::KeptState::pieces;
  const i64 kept = i64(blockIdx.x) * pieces;
  const float product = share_of_product(states + kept, adjoints + kept, pieces);
  const float of_warp = GateTerms::over_rows(GateTerms::over_quad(product));
  if (lane == 0) gate_terms.state[warp] = of_warp;
  // Half of the threads add the tokens' dots with queries, the others those with keys.
  const float* const dots = (warp < 2 ? query_dots : key_dots) + i64(head) * blocks * tokens + first;
  float sum = 0.0f;
  for (int i = 0; i < blocks && t % 64 < rows; ++i) sum = sum + dots[i * tokens + t % 64];
  (warp < 2 ? gate_terms.ends : gate_terms.starts)[t % 64] = sum;
  wait_copies<0>();
  __syncthreads();
  ScoreRows<OperandBf16, LaterPartners> a, m;
  gradients.key_scores(a);
  gradients.value_scores(m);
  gradients.weigh(a);
  a.times(m);
  gate_terms.sum_pairs(a.s, warp, lane);
  __syncthreads();
  const float dg = gate_terms.gradient(decays.whole_chunk());
  if (t % 2 == 0 && t / 2 < rows) gate_gradients[token + i64(t / 2) * shape.heads] = Gate::encode(dg);
}
