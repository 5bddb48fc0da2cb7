// dq, dk and dg of one warp's 16 key channels, by the halves that chunk_keys.cuh describes: first what comes
// from other chunks and x of both levels between tiles, then z of these and the levels inside each tile.
#pragma once
#include "gate_gradient.cuh"
#include "value_contractions.cuh"

// One warp's 16 key channels of a chunk, after the contractions over values. Pass: Forward or
// ExclusiveForward.
template <class Format, class Gate, class Pass, class Query, class Gradients>
struct KeyGradients {
  static constexpr bool of_keys = Gradients::of_keys;
  using Contractions = ValueContractions<Format, Gate, Query, of_keys>;
  using Shared = typename Contractions::Shared;
  using Operand = typename Contractions::Operand;
  using Queries = Fragment<typename Shared::QueryTile, Query>;
  using Keys = Fragment<typename Shared::KeyTile, Format>;
  using Gates = Fragment<typename Shared::GateTile, Gate>;
  using Products = Fragment<typename Shared::StateTile, typename Contractions::Plain>;
  const Shared& shared;
  Contractions& c;
  const Gradients& to;
  const KeyPlace& place;
  int column, lane;                          // the warp's first key channel in the tiles
  float total[4][2];                         // gates of a tile, log2
  float query_total[4][2], key_total[4][2];  // of a tile: sums of q dq and k dk as far as they cross chunks
  float bonus[2] = {}, bonus_sum[2] = {};    // exclusive: u, and the lane's share of du

  __device__ __forceinline__ KeyGradients(const Shared& s, Contractions& contractions, const Gradients& to,
                                          const KeyPlace& place, int warp, int lane)
      : shared(s), c(contractions), to(to), place(place), column(16 * warp), lane(lane) {
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      TileDecays decays;
      decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * tile, column, lane);
      total[tile][0] = decays.total(0), total[tile][1] = decays.total(1);
    }
  }

  __device__ static float over_lanes(float x) {
    x = x + __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
  }
  // Nothing but the gradients of keys and gates takes q.
  __device__ __forceinline__ void queries(Share& q, int tile) const {
    if constexpr (of_keys)
      Queries::columns(q, shared.queries(), 16 * tile, column, lane);
    else
#pragma unroll
      for (int e = 0; e < 8; ++e) q[e >> 2][e & 3] = 0.0f;
  }
  // Log decays from before the chunk to the row, from the row to the chunk's end; of 32 rows likewise.
  __device__ __forceinline__ float up_to_32(const TileDecays& decays, int tile, int i, int place) const {
    return ((tile & 1) ? total[tile ^ 1][i] : 0.0f) + decays.template up_to<Pass>(i, place, lane, 3);
  }
  __device__ __forceinline__ float after_32(const TileDecays& decays, int tile, int i, int place) const {
    return ((tile & 1) ? 0.0f : total[tile ^ 1][i]) + decays.after(i, place, lane, 3);
  }
  // F_s or B_s of both levels between tiles.
  __device__ __forceinline__ float exponent_16(const TileDecays& decays, int tile, int i, int place) const {
    return (tile & 1) ? decays.template up_to<Pass>(i, place, lane, 3) : decays.after(i, place, lane, 3);
  }
  __device__ __forceinline__ float exponent_32(const TileDecays& decays, int tile, int i, int place) const {
    return tile >= 2 ? up_to_32(decays, tile, i, place) : after_32(decays, tile, i, place);
  }
  __device__ __forceinline__ float half_total(int half, int i) const {
    return total[2 * half][i] + total[2 * half + 1][i];
  }

  // A tile's inputs.
  struct Inputs {
    Share q, k;
    TileDecays decays;
  };
  __device__ __forceinline__ Inputs inputs(int tile) const {
    Inputs in;
    queries(in.q, tile);
    Keys::columns(in.k, shared.keys(), 16 * tile, column, lane);
    in.decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * tile, column, lane);
    return in;
  }

  // First pass over a tile: what comes from other chunks; x of both levels between tiles.
  __device__ __forceinline__ void across_chunks(const Inputs& in, int tile, float scale, Share& x16,
                                                Share& x32) {
    const Share &q = in.q, &k = in.k;
    const TileDecays& decays = in.decays;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float of_queries = 0.0f, of_keys = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float before = up_to_32(decays, tile, i, p), behind = after_32(decays, tile, i, p);
        float& dq = element(c.queries[tile], i, p);
        float& dk = element(c.keys[tile], i, p);
        dq = dq * (power_of_two((tile >= 2 ? half_total(0, i) : 0.0f) + before) * scale);
        dk = dk * power_of_two((tile < 2 ? half_total(1, i) : 0.0f) + behind);
        of_queries = fused(q[i][p], dq, of_queries), of_keys = fused(k[i][p], dk, of_keys);
        x16[i][p] = ((tile & 1) ? q[i][p] : k[i][p]) * power_of_two(exponent_16(decays, tile, i, p));
        x32[i][p] = (tile >= 2 ? q[i][p] : k[i][p]) * power_of_two(exponent_32(decays, tile, i, p));
      }
      if constexpr (KeyGradients::of_keys)
        query_total[tile][i] = over_lanes(of_queries), key_total[tile][i] = over_lanes(of_keys);
    }
  }

  // z of a tile from those of another one: M or its transpose.
  __device__ __forceinline__ void add_tile(Accumulator (&z)[2], const Operand& x, int tile, int from) const {
    const Operand m = tile > from ? Products::template second_row_operand<Operand>(shared.products(),
                                                                                   16 * tile, 16 * from, lane)
                                  : Products::template second_column_operand<Operand>(
                                        shared.products(), 16 * from, 16 * tile, lane);
    multiply(z[0], x, m, 0);
    multiply(z[1], x, m, 1);
  }

  // One level inside a tile: x of all rows, z from the pairs that level s parts.
  template <int s>
  __device__ __forceinline__ void level(const TileDecays& decays, const Share& q, const Share& k,
                                        const Share& m, int tile, GatePending& gates) {
    Share factor, x, pairs;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3, apart = ((lane >> 2) + 8 * i) ^ element_of(p, lane);
      factor[i][p] = power_of_two(decays.template exponent<Pass, s>(i, p, lane));
      x[i][p] = (is_second<s>(p) ? q[i][p] : k[i][p]) * factor[i][p];
      pairs[i][p] = apart >= s && apart < 2 * s ? m[i][p] : 0.0f;
    }
    Accumulator z[2];
    z[0].clear(), z[1].clear();
    const Operand a = Operand::of(x), b = Operand::of(pairs);
    multiply(z[0], a, b, 0);
    multiply(z[1], a, b, 1);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const float sum = element(z, i, p);
      const bool second = is_second<s>(p);
      float& dq = element(c.queries[tile], i, p);
      float& dk = element(c.keys[tile], i, p);
      const float gradient = fused(factor[i][p], sum, second ? dq : dk);
      dq = second ? gradient : dq, dk = second ? dk : gradient;
      if constexpr (of_keys) gates.add(i, p, second, x[i][p] * sum);
    }
  }
  template <int s>
  __device__ __forceinline__ bool is_second(int place) const {
    return s == 1 ? place >> 1 : s == 2 ? lane & 1 : s == 4 ? lane & 2 : place & 1;
  }

  // Second pass over a tile. x16, x32: of all tiles; partner32: sum of level 32 over the tile of the same
  // half that was done before (0 for the first of a half), replaced by this tile's.
  __device__ __forceinline__ void within_chunk(const Inputs& in, int tile, const Share (&x16)[4],
                                               const Share (&x32)[4], float (&partner32)[2]) {
    const Share &q = in.q, &k = in.k;
    const TileDecays& decays = in.decays;
    Accumulator z16[2], z32[2];
    z16[0].clear(), z16[1].clear(), z32[0].clear(), z32[1].clear();
    if (of_keys || (tile & 1)) add_tile(z16, Operand::of(x16[tile ^ 1]), tile, tile ^ 1);
    if (of_keys || tile >= 2)
#pragma unroll
      for (int other = 0; other < 2; ++other) {
        const int from = (tile < 2 ? 2 : 0) + other;
        add_tile(z32, Operand::of(x32[from]), tile, from);
      }
    GatePending gates;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float all = (half_total(0, i) + half_total(1, i));
      float everywhere = c.carried[i] * power_of_two(all) + partner32[i];
#pragma unroll
      for (int other = 0; other < 4; ++other) {
        if (other > tile) everywhere = everywhere + query_total[other][i];
        if (other < tile) everywhere = everywhere + key_total[other][i];
      }
      float of_32 = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float e16 = power_of_two(exponent_16(decays, tile, i, p)),
                    e32 = power_of_two(exponent_32(decays, tile, i, p));
        float& dq = element(c.queries[tile], i, p);
        float& dk = element(c.keys[tile], i, p);
        if constexpr (of_keys) {
          const float h16 = x16[tile][i][p] * element(z16, i, p), h32 = x32[tile][i][p] * element(z32, i, p);
          gates.dg[i][p] = everywhere;
          gates.ends[i][p] = q[i][p] * dq, gates.starts[i][p] = k[i][p] * dk;
          gates.add(i, p, tile >= 2, h32);
          gates.add(i, p, tile & 1, h16);
          of_32 = of_32 + h32;
        }
        (tile >= 2 ? dq : dk) = fused(e32, element(z32, i, p), tile >= 2 ? dq : dk);
        ((tile & 1) ? dq : dk) = fused(e16, element(z16, i, p), (tile & 1) ? dq : dk);
      }
      if constexpr (of_keys) partner32[i] = over_lanes(of_32);
    }
    Share m;
    Products::rows(m, shared.products(), 16 * tile, 16 * tile, lane);
    if constexpr (of_keys) gates.descend_to_eight();
    level<8>(decays, q, k, m, tile, gates);
    if constexpr (of_keys) gates.template descend<2>(lane);
    level<4>(decays, q, k, m, tile, gates);
    if constexpr (of_keys) gates.template descend<1>(lane);
    level<2>(decays, q, k, m, tile, gates);
    if constexpr (of_keys) gates.descend_to_rows();
    level<1>(decays, q, k, m, tile, gates);
    finish(tile, q, k, gates);
  }

  // Adds each token's pair with itself.
  __device__ __forceinline__ void finish(int tile, const Share& q, const Share& k, const GatePending& gates) {
    Share dq, dk, dg;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const float same = shared.diagonal()[16 * tile + element_of(p, lane)];
      const float own = Pass::exclusive ? same * bonus[i] : same;
      dq[i][p] = fused(own, k[i][p], element(c.queries[tile], i, p));
      dk[i][p] = fused(own, q[i][p], element(c.keys[tile], i, p));
      dg[i][p] = Pass::target_decays ? gates.dg[i][p] + gates.ends[i][p] : gates.dg[i][p];
      if constexpr (Pass::exclusive) bonus_sum[i] = fused(same * q[i][p], k[i][p], bonus_sum[i]);
    }
    to.put(shared, place, 16 * tile, column, lane, dq, dk, dg);
  }
};
