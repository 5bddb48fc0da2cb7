// dr, dw, dk, da and db of one warp's 16 key channels and 32 tokens, by the halves that chunk_gradients.cuh
// describes: first what comes from other chunks and x and y of both levels between tiles, then z and z' of
// these and the levels inside each tile.
#pragma once
#include "../delta/channel_gradients.cuh"
#include "gradient_contractions.cuh"

namespace general {

// One warp's 16 key channels and 32 tokens, after the contractions. `half`: of the chunk.
template <class Format, class Gate, int half>
struct HalfGradients {
  using Contractions = ChannelContractions<Format, Gate>;
  using Shared = typename Contractions::Shared;
  using Operand = typename Contractions::Operand;
  using Inputs = Fragment<typename Shared::KeyTile, Format>;
  using Products = Fragment<typename Shared::PairTile, typename Shared::Kept>;
  const Shared& shared;
  Contractions& c;
  int group, column, lane;  // the warp's key channels in the tiles
  rule::TileTotals totals;
  Operand x16[2], y16[2];
  float partner[2];  // x z + y z' of the level between halves, over the tile that was done before

  __device__ __forceinline__ HalfGradients(const Shared& s, Contractions& contractions, int group, int lane)
      : shared(s), c(contractions), group(group), column(16 * group), lane(lane) {
    totals.template load<typename Shared::GateTile, Gate>(shared.gates(), column, lane);
    partner[0] = partner[1] = 0.0f;
  }
  static __device__ __forceinline__ float over_lanes(float x) {
    x = x + __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
  }
  __device__ __forceinline__ void load(TileRows& x, int tile) const {
    Inputs::columns(x.r, shared.queries(), 16 * tile, column, lane);
    Inputs::columns(x.k, shared.keys(), 16 * tile, column, lane);
    Inputs::columns(x.a, shared.readers(), 16 * tile, column, lane);
    Inputs::columns(x.b, shared.writers(), 16 * tile, column, lane);
  }
  __device__ __forceinline__ void load(TileDecays& decays, int tile) const {
    decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * tile, column, lane);
  }
  using RowDecays = rule::RowDecays<ExclusiveForward>;

  // First pass over a tile of the half: what comes from other chunks; x and y of both levels between tiles.
  template <int local>
  __device__ __forceinline__ void across_chunks(float scale) {
    constexpr int tile = 2 * half + local;
    TileRows rows;
    TileDecays decays;
    load(rows, tile), load(decays, tile);
    Share x, y, far_x, far_y;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float ending = 0.0f, starting = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float r = rows.r[i][p], k = rows.k[i][p], a = rows.a[i][p], b = rows.b[i][p];
        const RowDecays row(totals, decays, tile, i, p, lane);
        float &dr = element(c.queries[local], i, p), &da = element(c.readers[local], i, p),
              &dk = element(c.keys[local], i, p), &db = element(c.writers[local], i, p);
        const float own = power_of_two(decays.y[i][p]), from_start = power_of_two(row.from_start),
                    to_end = power_of_two(row.to_end), near = power_of_two(row.level16),
                    far = power_of_two(row.level32);
        dr = dr * (from_start * own * scale), da = da * from_start, dk = dk * to_end, db = db * to_end;
        ending = fused(a, da, fused(r, dr, ending)), starting = fused(b, db, fused(k, dk, starting));
        x[i][p] = local ? r * (near * own) : k * near, y[i][p] = (local ? a : b) * near;
        far_x[i][p] = half ? r * (far * own) : k * far, far_y[i][p] = (half ? a : b) * far;
      }
      ending = over_lanes(ending), starting = over_lanes(starting);
      if ((lane & 3) == 0) {
        const int channel = column + (lane >> 2) + 8 * i;
        shared.sum(tile, 0, channel) = ending, shared.sum(tile, 1, channel) = starting;
      }
    }
    x16[local] = Operand::of(x), y16[local] = Operand::of(y);
    Operand::store_values(shared.far(group, tile, 0), lane, far_x);
    Operand::store_values(shared.far(group, tile, 1), lane, far_y);
  }

  // Second pass, when all warps have done the first.
  template <int local, class To>
  __device__ __forceinline__ void within_chunk(const To& to) {
    constexpr int tile = 2 * half + local;
    TileDecays decays;
    load(decays, tile);
    GatePending gates;
    Share kept;  // of what ends in a row, that which its own decay is passed by
    begin<local>(decays, gates, kept);
    gates.descend_to_eight();
    level<local, 8>(decays, gates, kept);
    gates.template descend<2>(lane);
    level<local, 4>(decays, gates, kept);
    gates.template descend<1>(lane);
    level<local, 2>(decays, gates, kept);
    gates.descend_to_rows();
    level<local, 1>(decays, gates, kept);
    finish<local>(gates, kept, to);
  }

 private:
  // Adds to z and z' the sums over the tokens of another tile, whose x and y these are.
  template <int tile, int from>
  __device__ __forceinline__ void add_tile(Accumulator (&z)[2], Accumulator (&other)[2], const Operand& x,
                                           const Operand& y) const {
    const Operand rows = Products::template row_operand<Operand>(shared.own(), 16 * tile, 16 * from, lane),
                  columns =
                      Products::template column_operand<Operand>(shared.own(), 16 * from, 16 * tile, lane),
                  crossed =
                      Products::template row_operand<Operand>(shared.crossed(), 16 * tile, 16 * from, lane),
                  turned = Products::template column_operand<Operand>(shared.crossed(), 16 * from, 16 * tile,
                                                                      lane);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      multiply(z[h], x, tile > from ? rows : columns, h), multiply(z[h], y, crossed, h);
      multiply(other[h], y, tile > from ? columns : rows, h), multiply(other[h], x, turned, h);
    }
  }

  // Adds a row's sums with their weights to its gradients.
  template <int local>
  __device__ __forceinline__ void add_sums(bool later, float x_weight, float y_weight, float z, float other,
                                           int i, int p) {
    float &dr = element(c.queries[local], i, p), &da = element(c.readers[local], i, p),
          &dk = element(c.keys[local], i, p), &db = element(c.writers[local], i, p);
    const float first = fused(x_weight, z, later ? dr : dk), second = fused(y_weight, other, later ? da : db);
    dr = later ? first : dr, dk = later ? dk : first;
    da = later ? second : da, db = later ? db : second;
  }

  // What comes from other chunks and tiles.
  template <int local>
  __device__ __forceinline__ void begin(const TileDecays& decays, GatePending& gates, Share& kept) {
    TileRows rows;
    load(rows, 2 * half + local);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float everywhere = passed_everywhere<local>(i) + partner[i];
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float ends = rows.r[i][p] * element(c.queries[local], i, p);
        gates.dg[i][p] = everywhere;
        gates.ends[i][p] = fused(rows.a[i][p], element(c.readers[local], i, p), ends);
        gates.starts[i][p] =
            fused(rows.b[i][p], element(c.writers[local], i, p), rows.k[i][p] * element(c.keys[local], i, p));
        kept[i][p] = ends;
      }
    }
    between_tiles<local, true>(rows, decays, gates, kept);
    between_tiles<local, false>(rows, decays, gates, kept);
  }
  // Of the lane's channel i what passes the decays of all of a tile's rows.
  template <int local>
  __device__ __forceinline__ float passed_everywhere(int i) const {
    constexpr int tile = 2 * half + local;
    const int channel = column + (lane >> 2) + 8 * i;
    float sum = c.carried[i] * power_of_two(totals.of_half(0, i) + totals.of_half(1, i));
#pragma unroll
    for (int other = 0; other < 4; ++other)
      if (other != tile) sum = sum + shared.sum(other, other > tile ? 0 : 1, channel);
    return sum;
  }
  // The pairs with the tokens of the other half, or of the half's other tile.
  template <int local, bool far>
  __device__ __forceinline__ void between_tiles(const TileRows& rows, const TileDecays& decays,
                                                GatePending& gates, Share& kept) {
    constexpr int tile = 2 * half + local, far_tile = half ? 0 : 2;
    constexpr bool later = far ? half : local;
    Accumulator z[2], other[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) z[h].clear(), other[h].clear();
    if constexpr (far) {
      add_tile<tile, far_tile>(z, other, Operand::load(shared.far(group, far_tile, 0), lane),
                               Operand::load(shared.far(group, far_tile, 1), lane));
      add_tile<tile, far_tile + 1>(z, other, Operand::load(shared.far(group, far_tile + 1, 0), lane),
                                   Operand::load(shared.far(group, far_tile + 1, 1), lane));
    } else {
      add_tile<tile, (tile ^ 1)>(z, other, x16[local ^ 1], y16[local ^ 1]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float sum = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const RowDecays row(totals, decays, tile, i, p, lane);
        const float y_weight = power_of_two(far ? row.level32 : row.level16),
                    x_weight = of_x(y_weight, decays, later, i, p);
        const float of_z = element(z, i, p), of_other = element(other, i, p);
        add_sums<local>(later, x_weight, y_weight, of_z, of_other, i, p);
        const float first = (later ? rows.r[i][p] : rows.k[i][p]) * x_weight * of_z,
                    both = fused((later ? rows.a[i][p] : rows.b[i][p]) * y_weight, of_other, first);
        gates.add(i, p, later, both);
        if constexpr (later) kept[i][p] = kept[i][p] + first;
        sum = sum + both;
      }
      if constexpr (far) partner[i] = over_lanes(sum);
    }
  }

  template <int s>
  __device__ __forceinline__ bool is_second(int place) const {
    return s == 1 ? place >> 1 : s == 2 ? lane & 1 : s == 4 ? lane & 2 : place & 1;
  }
  // One level inside a tile: x and y of all rows, z and z' from the pairs that level s parts.
  template <int local, int s>
  __device__ __forceinline__ void level(const TileDecays& decays, GatePending& gates, Share& kept) {
    constexpr int tile = 2 * half + local;
    Share weight, x, y;
    {
      TileRows rows;
      load(rows, tile);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int i = e >> 2, p = e & 3;
        const bool later = is_second<s>(p);
        weight[i][p] =
            s == 1 ? 1.0f : power_of_two(decays.template exponent<ExclusiveForward, s>(i, p, lane));
        x[i][p] = (later ? rows.r[i][p] : rows.k[i][p]) * of_x(weight[i][p], decays, later, i, p);
        y[i][p] = (later ? rows.a[i][p] : rows.b[i][p]) * weight[i][p];
      }
    }
    Accumulator z[2], other[2];
    multiply_level<tile, s>(z, other, Operand::of(x), Operand::of(y));
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const bool later = is_second<s>(p);
      const float of_z = element(z, i, p), of_other = element(other, i, p), first = x[i][p] * of_z;
      add_sums<local>(later, of_x(weight[i][p], decays, later, i, p), weight[i][p], of_z, of_other, i, p);
      gates.add(i, p, later, fused(y[i][p], of_other, first));
      kept[i][p] = later ? kept[i][p] + first : kept[i][p];
    }
  }
  // The weight of x from that of y: on the later side with the row's own decay.
  static __device__ __forceinline__ float of_x(float weight, const TileDecays& decays, bool later, int i,
                                               int p) {
    return later ? weight * power_of_two(decays.y[i][p]) : weight;
  }
  // z and z' of the pairs of a tile that differ in bit s first.
  template <int tile, int s>
  __device__ __forceinline__ void multiply_level(Accumulator (&z)[2], Accumulator (&other)[2],
                                                 const Operand& x, const Operand& y) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) z[h].clear(), other[h].clear();
    const auto parted = [&](int i, int p) {
      const int apart = ((lane >> 2) + 8 * i) ^ element_of(p, lane);
      return apart >= s && apart < 2 * s;
    };
    Share lower, upper, m, q;
    Products::rows(lower, shared.own(), 16 * tile, 16 * tile, lane);
    Products::columns(upper, shared.own(), 16 * tile, 16 * tile, lane);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const bool below = (lane >> 2) + 8 * i > element_of(p, lane);
      m[i][p] = parted(i, p) ? (below ? lower[i][p] : upper[i][p]) : 0.0f;
      q[i][p] = parted(i, p) ? (below ? upper[i][p] : lower[i][p]) : 0.0f;
    }
    multiply_both(z, x, Operand::of(m)), multiply_both(other, y, Operand::of(q));
    Share of_rows, of_columns;
    Products::rows(of_rows, shared.crossed(), 16 * tile, 16 * tile, lane);
    Products::columns(of_columns, shared.crossed(), 16 * tile, 16 * tile, lane);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      of_rows[i][p] = parted(i, p) ? of_rows[i][p] : 0.0f;
      of_columns[i][p] = parted(i, p) ? of_columns[i][p] : 0.0f;
    }
    multiply_both(z, y, Operand::of(of_rows)), multiply_both(other, x, Operand::of(of_columns));
  }
  static __device__ __forceinline__ void multiply_both(Accumulator (&z)[2], const Operand& a,
                                                       const Operand& b) {
    multiply(z[0], a, b, 0);
    multiply(z[1], a, b, 1);
  }

  // Adds each token's pairs with itself.
  template <int local, class To>
  __device__ __forceinline__ void finish(const GatePending& gates, const Share& kept, const To& to) const {
    constexpr int tile = 2 * half + local;
    TileRows rows, d;
    Share dw;
    load(rows, tile);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3, token = 16 * tile + element_of(p, lane);
      const float m = shared.diagonals()[token], n = shared.diagonals()[64 + token];
      d.r[i][p] = fused(n, rows.b[i][p], fused(m, rows.k[i][p], element(c.queries[local], i, p)));
      d.k[i][p] = fused(m, rows.r[i][p], element(c.keys[local], i, p));
      d.a[i][p] = element(c.readers[local], i, p);
      d.b[i][p] = fused(n, rows.r[i][p], element(c.writers[local], i, p));
      dw[i][p] = gates.dg[i][p] + kept[i][p];
    }
    to.put(shared, 16 * tile, column, lane, d, dw);
  }
};

}  // namespace general
