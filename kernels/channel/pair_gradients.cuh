// dq, dk and dg of one warp's 16 key channels, by the halves that chunk_keys.cuh describes: first what comes
// from other chunks and x of both levels between tiles, then z of these and the levels inside each tile.
#pragma once
#include "gate_gradient.cuh"
#include "value_contractions.cuh"

// x of a tile until its products: as an operand where that is smaller.
template <class Operand>
struct Waiting {
  Share x;
  __device__ __forceinline__ void keep(const Share& from) {
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e >> 2][e & 3] = from[e >> 2][e & 3];
  }
  __device__ __forceinline__ Operand operand() const {
    return Operand::of(x);
  }
};
template <>
struct Waiting<OperandBf16> {
  OperandBf16 x;
  __device__ __forceinline__ void keep(const Share& from) { x = OperandBf16::of(from); }
  __device__ __forceinline__ OperandBf16 operand() const { return x; }
};

// The pairs of a tile that one level parts, as an operand: the others are zero.
template <class Operand, class Products>
struct TilePairs {
  Share m;

  __device__ __forceinline__ void load(const char* products, int tile, int lane) {
    Products::rows(m, products, 16 * tile, 16 * tile, lane);
  }
  template <int s>
  __device__ __forceinline__ Operand of_level(int lane) const {
    Share pairs;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3, apart = ((lane >> 2) + 8 * i) ^ element_of(p, lane);
      pairs[i][p] = apart >= s && apart < 2 * s ? m[i][p] : 0.0f;
    }
    return Operand::of(pairs);
  }
};
// As they lie in memory.
template <class Products>
struct TilePairs<OperandBf16, Products> {
  OperandBf16 m;

  __device__ __forceinline__ void load(const char* products, int tile, int lane) {
    m = Products::template row_operand<OperandBf16>(products, 16 * tile, 16 * tile, lane);
  }
  template <int s>
  __device__ __forceinline__ OperandBf16 of_level(int lane) const {
    if constexpr (s == 8) return {{0, m.r[1], m.r[2], 0}};
    const int apart = (lane >> 2) ^ (2 * (lane & 3));  // the even one of both neighbours
    const bool live = s == 1 ? apart < 2 : apart >= s && apart < 2 * s;
    u32 low = live ? m.r[0] : 0, high = live ? m.r[3] : 0;
    if (s == 1) {
      low = apart & 1 ? low & 0xffffu : low & 0xffff0000u;
      high = apart & 1 ? high & 0xffffu : high & 0xffff0000u;
    }
    return {{low, 0, 0, high}};
  }
};

// A tile of 16 tokens: which one of the warp's and of the chunk's it is, and whether it comes second at the
// levels between tiles.
struct TilePlace {
  int at, tile;
  bool odd, later;
};

// One warp's 16 key channels of a chunk, after the contractions over values: all four tiles of 16 tokens, or
// the two of a half, of the second one the last tile first. Pass: Forward or ExclusiveForward.
template <class Format, class Gate, class Pass, class Query, class Gradients, int tiles>
struct KeyGradients {
  static constexpr bool of_keys = Gradients::of_keys, alone = tiles == 4;
  using Contractions = ValueContractions<Format, Gate, Query, of_keys, tiles>;
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
  int column, half, lane;                            // the warp's first key channel, its half of the tokens
  float total[tiles][2], of_half[2][2];              // gates of a tile, of the chunk's halves, log2
  float query_total[tiles][2], key_total[tiles][2];  // of a tile: sums of q dq and k dk that cross chunks
  float other_half[2][2];                            // those of the other half's tiles that this one needs
  float bonus[2] = {}, bonus_sum[2] = {};            // exclusive: u, and the lane's share of du

  __device__ __forceinline__ KeyGradients(const Shared& s, Contractions& contractions, const Gradients& to,
                                          const KeyPlace& place, int group, int half, int lane)
      : shared(s), c(contractions), to(to), place(place), column(16 * group), half(half), lane(lane) {}

  template <bool later>
  static __device__ __forceinline__ TilePlace place_of(int at) {
    return {at, later ? 3 - at : at, (at & 1) != later, later};
  }
  static __device__ __forceinline__ TilePlace place_of(int at) { return {at, at, (at & 1) != 0, at >= 2}; }
  __device__ __forceinline__ int channel(int i) const { return column + (lane >> 2) + 8 * i; }

  // Sums of gates; those of the other half come from its warp by share_totals() and a barrier.
  __device__ __forceinline__ void load_totals() {
#pragma unroll
    for (int at = 0; at < tiles; ++at) {
      TileDecays decays;
      decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * c.tile_of(half, at), column,
                                                            lane);
      total[at][0] = decays.total(0), total[at][1] = decays.total(1);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      of_half[0][i] = total[0][i] + total[1][i];
      if constexpr (alone) of_half[1][i] = total[2][i] + total[3][i];
    }
  }
  __device__ __forceinline__ void share_totals() const {
    if ((lane & 3) == 0)
#pragma unroll
      for (int i = 0; i < 2; ++i) shared.sum(5 + half, channel(i)) = of_half[0][i];
  }
  __device__ __forceinline__ void take_totals() {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      of_half[0][i] = shared.sum(5, channel(i)), of_half[1][i] = shared.sum(6, channel(i));
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
  // Log decays from before the half to the row, from the row to the half's end.
  __device__ __forceinline__ float up_to_32(const TileDecays& decays, const TilePlace& t, int i,
                                            int place) const {
    return (t.odd ? total[t.at ^ 1][i] : 0.0f) + decays.template up_to<Pass>(i, place, lane, 3);
  }
  __device__ __forceinline__ float after_32(const TileDecays& decays, const TilePlace& t, int i,
                                            int place) const {
    return (t.odd ? 0.0f : total[t.at ^ 1][i]) + decays.after(i, place, lane, 3);
  }
  // F_s or B_s of both levels between tiles.
  __device__ __forceinline__ float exponent_16(const TileDecays& decays, const TilePlace& t, int i,
                                               int place) const {
    return t.odd ? decays.template up_to<Pass>(i, place, lane, 3) : decays.after(i, place, lane, 3);
  }
  __device__ __forceinline__ float exponent_32(const TileDecays& decays, const TilePlace& t, int i,
                                               int place) const {
    return t.later ? up_to_32(decays, t, i, place) : after_32(decays, t, i, place);
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
  __device__ __forceinline__ void across_chunks(const Inputs& in, const TilePlace& t, float scale, Share& x16,
                                                Share& x32) {
    const Share &q = in.q, &k = in.k;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float of_queries = 0.0f, of_keys = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float before = up_to_32(in.decays, t, i, p), behind = after_32(in.decays, t, i, p);
        float& dq = element(c.queries[t.at], i, p);
        float& dk = element(c.keys[t.at], i, p);
        dq = dq * (power_of_two((t.later ? of_half[0][i] : 0.0f) + before) * scale);
        dk = dk * power_of_two((t.later ? 0.0f : of_half[1][i]) + behind);
        of_queries = fused(q[i][p], dq, of_queries), of_keys = fused(k[i][p], dk, of_keys);
        x16[i][p] = (t.odd ? q[i][p] : k[i][p]) * power_of_two(exponent_16(in.decays, t, i, p));
        x32[i][p] = (t.later ? q[i][p] : k[i][p]) * power_of_two(t.later ? before : behind);
      }
      if constexpr (KeyGradients::of_keys)
        query_total[t.at][i] = over_lanes(of_queries), key_total[t.at][i] = over_lanes(of_keys);
    }
  }
  // The same over the tiles of a half; leaves what the other one's warp needs.
  __device__ __forceinline__ void across_chunks(float scale, Waiting<Operand> (&x16)[tiles]) {
    const bool later = half != 0;
#pragma unroll
    for (int at = 0; at < 2; ++at) {
      const TilePlace t{at, c.tile_of(half, at), (at & 1) != half, later};
      Share near, far;
      across_chunks(inputs(t.tile), t, scale, near, far);
      x16[at].keep(near);
      Operand::store_values(shared.exchange(column / 16, t.tile), lane, far);
      if ((lane & 3) == 0)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          shared.sum(t.tile, channel(i)) = later ? query_total[at][i] : key_total[at][i];
    }
    if (!later && (lane & 3) == 0)
#pragma unroll
      for (int i = 0; i < 2; ++i) shared.sum(4, channel(i)) = c.carried[i];
  }
  __device__ __forceinline__ void take_sums() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      other_half[0][i] = shared.sum(2 - 2 * half, channel(i));
      other_half[1][i] = shared.sum(3 - 2 * half, channel(i));
      c.carried[i] = shared.sum(4, channel(i));
    }
  }

  // z of a tile from those of another one: M or its transpose.
  __device__ __forceinline__ void add_tile(Accumulator (&z)[2], const Operand& x, bool from_earlier, int tile,
                                           int from) const {
    const Operand m = from_earlier ? Products::template second_row_operand<Operand>(
                                         shared.products(), 16 * tile, 16 * from, lane)
                                   : Products::template second_column_operand<Operand>(
                                         shared.products(), 16 * from, 16 * tile, lane);
    multiply(z[0], x, m, 0);
    multiply(z[1], x, m, 1);
  }
  // Adds what every row of a tile has from the others' paths across chunks, in the order of the tiles.
  __device__ __forceinline__ float with_other_tiles(float sum, const TilePlace& t, int i) const {
    if constexpr (alone) {
#pragma unroll
      for (int other = 0; other < 4; ++other) {
        if (other > t.tile) sum = sum + query_total[other][i];
        if (other < t.tile) sum = sum + key_total[other][i];
      }
      return sum;
    } else {
      const float partner = t.odd ? key_total[t.at ^ 1][i] : query_total[t.at ^ 1][i];
      if (t.later) return ((sum + other_half[0][i]) + other_half[1][i]) + partner;
      return ((sum + partner) + other_half[0][i]) + other_half[1][i];
    }
  }

  // Second pass over a tile, both levels between tiles. x16: of the warp's tiles; x32: of all, where they are
  // its own; partner32: sum of level 32 over the tile of the same half whose turn was before (0 for the first
  // of a half), replaced by this tile's.
  __device__ __forceinline__ void between_tiles(const Inputs& in, const TilePlace& t,
                                                const Waiting<Operand> (&x16)[tiles],
                                                const Waiting<Operand>* x32, float (&partner32)[2],
                                                GatePending& gates) {
    const Share &q = in.q, &k = in.k;
    Accumulator z16[2], z32[2];
    z16[0].clear(), z16[1].clear(), z32[0].clear(), z32[1].clear();
    if (of_keys || t.odd) add_tile(z16, x16[t.at ^ 1].operand(), t.odd, t.tile, t.tile ^ 1);
    if (of_keys || t.later)
#pragma unroll
      for (int other = 0; other < 2; ++other) {
        const int from = (t.later ? 0 : 2) + other;
        if constexpr (alone)
          add_tile(z32, x32[from].operand(), t.later, t.tile, from);
        else
          add_tile(z32, Operand::load(shared.exchange(column / 16, from), lane), t.later, t.tile, from);
      }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float all = (of_half[0][i] + of_half[1][i]);
      const float everywhere = with_other_tiles(c.carried[i] * power_of_two(all) + partner32[i], t, i);
      float of_32 = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float e16 = power_of_two(exponent_16(in.decays, t, i, p)),
                    e32 = power_of_two(exponent_32(in.decays, t, i, p));
        float& dq = element(c.queries[t.at], i, p);
        float& dk = element(c.keys[t.at], i, p);
        if constexpr (of_keys) {
          const float h16 = (t.odd ? q[i][p] : k[i][p]) * e16 * element(z16, i, p),
                      h32 = (t.later ? q[i][p] : k[i][p]) * e32 * element(z32, i, p);
          gates.dg[i][p] = everywhere;
          gates.ends[i][p] = q[i][p] * dq, gates.starts[i][p] = k[i][p] * dk;
          gates.add(i, p, t.later, h32);
          gates.add(i, p, t.odd, h16);
          of_32 = of_32 + h32;
        }
        (t.later ? dq : dk) = fused(e32, element(z32, i, p), t.later ? dq : dk);
        (t.odd ? dq : dk) = fused(e16, element(z16, i, p), t.odd ? dq : dk);
      }
      if constexpr (of_keys) partner32[i] = over_lanes(of_32);
    }
  }

  // One level inside a tile: x of all rows, z from the pairs that level s parts.
  template <int s>
  __device__ __forceinline__ void level(const Inputs& in, const TilePairs<Operand, Products>& m, int at,
                                        GatePending& gates) {
    Share factor, x;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      // A single row that sources or earlier readouts pass by decays nothing.
      factor[i][p] = s == 1 && !(Pass::target_decays && (p >> 1))
                         ? 1.0f
                         : power_of_two(in.decays.template exponent<Pass, s>(i, p, lane));
      x[i][p] = (is_second<s>(p) ? in.q[i][p] : in.k[i][p]) * factor[i][p];
    }
    Accumulator z[2];
    z[0].clear(), z[1].clear();
    const Operand a = Operand::of(x), b = m.template of_level<s>(lane);
    multiply(z[0], a, b, 0);
    multiply(z[1], a, b, 1);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const float sum = element(z, i, p);
      const bool second = is_second<s>(p);
      float& dq = element(c.queries[at], i, p);
      float& dk = element(c.keys[at], i, p);
      if (second)
        dq = fused(factor[i][p], sum, dq);
      else
        dk = fused(factor[i][p], sum, dk);
      if constexpr (of_keys) gates.add(i, p, second, x[i][p] * sum);
    }
  }
  template <int s>
  __device__ __forceinline__ bool is_second(int place) const {
    return s == 1 ? place >> 1 : s == 2 ? lane & 1 : s == 4 ? lane & 2 : place & 1;
  }

  // Then those inside it; puts its gradients.
  __device__ __forceinline__ void within_tile(const Inputs& in, int at, int tile, GatePending& gates) {
    TilePairs<Operand, Products> m;
    m.load(shared.products(), tile, lane);
    if constexpr (of_keys) gates.descend_to_eight();
    level<8>(in, m, at, gates);
    if constexpr (of_keys) gates.template descend<2>(lane);
    level<4>(in, m, at, gates);
    if constexpr (of_keys) gates.template descend<1>(lane);
    level<2>(in, m, at, gates);
    if constexpr (of_keys) gates.descend_to_rows();
    level<1>(in, m, at, gates);
    finish(in, at, tile, gates);
  }

  // Adds each token's pair with itself.
  __device__ __forceinline__ void finish(const Inputs& in, int at, int tile, const GatePending& gates) {
    Share dq, dk, dg;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const float same = shared.diagonal()[16 * tile + element_of(p, lane)];
      const float own = Pass::exclusive ? same * bonus[i] : same;
      dq[i][p] = fused(own, in.k[i][p], element(c.queries[at], i, p));
      dk[i][p] = fused(own, in.q[i][p], element(c.keys[at], i, p));
      dg[i][p] = Pass::target_decays ? gates.dg[i][p] + gates.ends[i][p] : gates.dg[i][p];
      if constexpr (Pass::exclusive) bonus_sum[i] = fused(same * in.q[i][p], in.k[i][p], bonus_sum[i]);
    }
    to.put(shared, place, 16 * tile, column, lane, dq, dk, dg);
  }

  // All tiles, by one warp. Of queries alone both passes over a tile at once: they take from earlier ones.
  __device__ __forceinline__ void of_all_tiles(float scale) {
    Waiting<Operand> x16[tiles], x32[tiles];
    float partner32[2] = {0.0f, 0.0f};
    GatePending gates;
    Share near, far;
    const auto first_pass = [&](const Inputs& in, int tile) {
      across_chunks(in, place_of(tile), scale, near, far);
      x16[tile].keep(near), x32[tile].keep(far);
    };
    const auto second_pass = [&](const Inputs& in, int tile) {
      between_tiles(in, place_of(tile), x16, x32, partner32, gates);
      within_tile(in, tile, tile, gates);
    };
    if constexpr (of_keys) {
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) first_pass(inputs(tile), tile);
      second_pass(inputs(0), 0);
      second_pass(inputs(1), 1);
      partner32[0] = partner32[1] = 0.0f;
      second_pass(inputs(3), 3);
      second_pass(inputs(2), 2);
    } else {
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        const Inputs in = inputs(tile);
        first_pass(in, tile), second_pass(in, tile);
      }
    }
  }
  // Those of one half, beside the warp of the other one.
  __device__ __forceinline__ void of_half_the_tiles(float scale) {
    Waiting<Operand> x16[tiles];
    float partner32[2] = {0.0f, 0.0f};
    GatePending gates;
    across_chunks(scale, x16);
    __syncthreads();
    take_sums();
#pragma unroll
    for (int at = 0; at < tiles; ++at) {
      const int tile = c.tile_of(half, at);
      to.expect(shared, 16 * tile, column, lane);
      const Inputs in = inputs(tile);
      if (half)
        between_tiles(in, place_of<true>(at), x16, nullptr, partner32, gates);
      else
        between_tiles(in, place_of<false>(at), x16, nullptr, partner32, gates);
      within_tile(in, at, tile, gates);
    }
  }
};
