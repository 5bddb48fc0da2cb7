// dr, dw, dk, da and db of one warp's 16 key channels and tokens, a tile, as chunk_gradients.cuh describes
// them: first what comes from other chunks and x and y of both levels between tiles, then z and z' of these
// and the levels inside the tile.
#pragma once
#include "../channel/pass.cuh"
#include "gradient_contractions.cuh"

namespace general {

// Gates of the tiles around one, log2.
struct TilesAround {
  float partner[2], first_half[2], second_half[2];  // partner: the other tile of its half

  template <class T, class Gate>
  __device__ __forceinline__ void load(const char* gates, int column, int tile, int lane) {
#pragma unroll
    for (int i = 0; i < 2; ++i) partner[i] = first_half[i] = second_half[i] = 0.0f;
#pragma unroll
    for (int other = 0; other < 4; ++other) {
      TileDecays decays;
      decays.template load<T, Gate>(gates, 16 * other, column, lane);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float total = decays.total(i);
        partner[i] = other == (tile ^ 1) ? total : partner[i];
        float& half = other < 2 ? first_half[i] : second_half[i];
        half = other & 1 ? half + total : total;
      }
    }
  }
};

// One row's decays by both levels between tiles, and to the chunk's ends; on a later side without its own.
struct RowDecays {
  float from_start, to_end, level16, level32;

  __device__ __forceinline__ RowDecays(const TilesAround& around, const TileDecays& decays, int tile, int i,
                                       int place, int lane) {
    const bool odd = tile & 1, second = tile >= 2;
    const float up_to_16 = decays.template up_to<ExclusiveForward>(i, place, lane, 3),
                after_16 = decays.after(i, place, lane, 3),
                up_to_32 = (odd ? around.partner[i] : 0.0f) + up_to_16,
                after_32 = (odd ? 0.0f : around.partner[i]) + after_16;
    from_start = (second ? around.first_half[i] : 0.0f) + up_to_32;
    to_end = (second ? 0.0f : around.second_half[i]) + after_32;
    level16 = odd ? up_to_16 : after_16, level32 = second ? up_to_32 : after_32;
  }
};

// One warp's 16 key channels and tokens, after the contractions.
template <class Format, class Gate>
struct TileGradients {
  using Contractions = ChannelContractions<Format, Gate>;
  using Shared = typename Contractions::Shared;
  using Operand = typename Contractions::Operand;
  using Inputs = Fragment<typename Shared::KeyTile, Format>;
  using Products = Fragment<typename Shared::PairTile, typename Shared::Kept>;
  const Shared& shared;
  Contractions& c;
  int group, column, tile, lane;  // the warp's key channels in the tiles
  TilesAround around;
  TileDecays decays;

  __device__ __forceinline__ TileGradients(const Shared& s, Contractions& contractions, int group, int tile,
                                           int lane)
      : shared(s), c(contractions), group(group), column(16 * group), tile(tile), lane(lane) {
    around.template load<typename Shared::GateTile, Gate>(shared.gates(), column, tile, lane);
    decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * tile, column, lane);
  }
  static __device__ __forceinline__ float over_lanes(float x) {
    x = x + __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
  }
  __device__ __forceinline__ int channel(int i) const { return column + (lane >> 2) + 8 * i; }
  __device__ __forceinline__ void load(TileRows& x) const {
    Inputs::columns(x.r, shared.queries(), 16 * tile, column, lane);
    Inputs::columns(x.k, shared.keys(), 16 * tile, column, lane);
    Inputs::columns(x.a, shared.readers(), 16 * tile, column, lane);
    Inputs::columns(x.b, shared.writers(), 16 * tile, column, lane);
  }

  // What comes from other chunks; x and y of both levels between tiles, and sums, for the other warps.
  __device__ __forceinline__ void across_chunks(float scale) {
    const bool odd = tile & 1, second = tile >= 2;
    TileRows rows;
    load(rows);
    Share x, y, far_x, far_y;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float ending = 0.0f, starting = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float r = rows.r[i][p], k = rows.k[i][p], a = rows.a[i][p], b = rows.b[i][p];
        const RowDecays row(around, decays, tile, i, p, lane);
        float &dr = element(c.queries, i, p), &da = element(c.readers, i, p), &dk = element(c.keys, i, p),
              &db = element(c.writers, i, p);
        const float own = power_of_two(decays.y[i][p]), from_start = power_of_two(row.from_start),
                    to_end = power_of_two(row.to_end), near = power_of_two(row.level16),
                    far = power_of_two(row.level32);
        dr = dr * (from_start * own * scale), da = da * from_start, dk = dk * to_end, db = db * to_end;
        ending = fused(a, da, fused(r, dr, ending)), starting = fused(b, db, fused(k, dk, starting));
        x[i][p] = odd ? r * (near * own) : k * near, y[i][p] = (odd ? a : b) * near;
        far_x[i][p] = second ? r * (far * own) : k * far, far_y[i][p] = (second ? a : b) * far;
      }
      ending = over_lanes(ending), starting = over_lanes(starting);
      if ((lane & 3) == 0)
        shared.sum(tile, 0, channel(i)) = ending, shared.sum(tile, 1, channel(i)) = starting;
    }
    Operand::store_values(shared.exchange(group, tile, 0), lane, x);
    Operand::store_values(shared.exchange(group, tile, 1), lane, y);
    Operand::store_values(shared.exchange(group, tile, 2), lane, far_x);
    Operand::store_values(shared.exchange(group, tile, 3), lane, far_y);
  }

  // When all warps have done that.
  template <class To>
  __device__ __forceinline__ void within_chunk(const To& to) {
    GatePending gates;
    Share kept;  // of what ends in a row, that which its own decay is passed by
    begin(gates, kept);
    gates.descend_to_eight();
    level<8>(gates, kept);
    gates.template descend<2>(lane);
    level<4>(gates, kept);
    gates.template descend<1>(lane);
    level<2>(gates, kept);
    gates.descend_to_rows();
    level<1>(gates, kept);
    finish(gates, kept, to);
  }

 private:
  // Adds to z and z' the sums over the tokens of another tile, whose x and y these are.
  __device__ __forceinline__ void add_tile(Accumulator (&z)[2], Accumulator (&other)[2], int from,
                                           int which) const {
    const Operand x = Operand::load(shared.exchange(group, from, which), lane),
                  y = Operand::load(shared.exchange(group, from, which + 1), lane),
                  crossed =
                      Products::template row_operand<Operand>(shared.crossed(), 16 * tile, 16 * from, lane),
                  turned = Products::template column_operand<Operand>(shared.crossed(), 16 * from, 16 * tile,
                                                                      lane);
    const auto own = [&](bool rows) {
      return rows ? Products::template row_operand<Operand>(shared.own(), 16 * tile, 16 * from, lane)
                  : Products::template column_operand<Operand>(shared.own(), 16 * from, 16 * tile, lane);
    };
    const Operand m = own(tile > from), q = own(tile < from);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      multiply(z[h], x, m, h), multiply(z[h], y, crossed, h);
      multiply(other[h], y, q, h), multiply(other[h], x, turned, h);
    }
  }

  // Adds a row's sums with their weights to its gradients.
  __device__ __forceinline__ void add_sums(bool later, float x_weight, float y_weight, float z, float other,
                                           int i, int p) {
    float &dr = element(c.queries, i, p), &da = element(c.readers, i, p), &dk = element(c.keys, i, p),
          &db = element(c.writers, i, p);
    const float first = fused(x_weight, z, later ? dr : dk), second = fused(y_weight, other, later ? da : db);
    dr = later ? first : dr, dk = later ? dk : first;
    da = later ? second : da, db = later ? db : second;
  }
  // The weight of x from that of y: on the later side with the row's own decay.
  __device__ __forceinline__ float of_x(float weight, bool later, int i, int p) const {
    return later ? weight * power_of_two(decays.y[i][p]) : weight;
  }

  // What comes from other chunks and tiles.
  __device__ __forceinline__ void begin(GatePending& gates, Share& kept) {
    TileRows rows;
    load(rows);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      kept[i][p] = rows.r[i][p] * element(c.queries, i, p);
      gates.ends[i][p] = fused(rows.a[i][p], element(c.readers, i, p), kept[i][p]);
      gates.starts[i][p] =
          fused(rows.b[i][p], element(c.writers, i, p), rows.k[i][p] * element(c.keys, i, p));
    }
    between_tiles<true>(gates, kept);
    __syncthreads();  // all sums between the halves are there
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool follows = tile == 1 || tile == 2;
      const float everywhere = passed_everywhere(i) + (follows ? shared.sum(tile ^ 1, 2, channel(i)) : 0.0f);
#pragma unroll
      for (int p = 0; p < 4; ++p) gates.dg[i][p] = everywhere;
    }
    between_tiles<false>(gates, kept);
  }
  // Of the lane's channel i what passes the decays of all of the tile's rows.
  __device__ __forceinline__ float passed_everywhere(int i) const {
    float sum = c.carried[i] * power_of_two(around.first_half[i] + around.second_half[i]);
#pragma unroll
    for (int other = 0; other < 4; ++other)
      if (other != tile) sum = sum + shared.sum(other, other > tile ? 0 : 1, channel(i));
    return sum;
  }
  // The pairs with the tokens of the other half, or of the half's other tile.
  template <bool far>
  __device__ __forceinline__ void between_tiles(GatePending& gates, Share& kept) {
    const bool later = far ? tile >= 2 : tile & 1;
    Accumulator z[2], other[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) z[h].clear(), other[h].clear();
    if constexpr (far)
      add_tile(z, other, tile < 2 ? 2 : 0, 2), add_tile(z, other, tile < 2 ? 3 : 1, 2);
    else
      add_tile(z, other, tile ^ 1, 0);
    TileRows rows;
    load(rows);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float sum = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const RowDecays row(around, decays, tile, i, p, lane);
        const float y_weight = power_of_two(far ? row.level32 : row.level16),
                    x_weight = of_x(y_weight, later, i, p);
        const float of_z = element(z, i, p), of_other = element(other, i, p);
        add_sums(later, x_weight, y_weight, of_z, of_other, i, p);
        const float first = (later ? rows.r[i][p] : rows.k[i][p]) * x_weight * of_z,
                    both = fused((later ? rows.a[i][p] : rows.b[i][p]) * y_weight, of_other, first);
        gates.add(i, p, later, both);
        kept[i][p] = later ? kept[i][p] + first : kept[i][p];
        sum = sum + both;
      }
      if constexpr (far) {
        sum = over_lanes(sum);
        if ((lane & 3) == 0) shared.sum(tile, 2, channel(i)) = sum;
      }
    }
  }

  template <int s>
  __device__ __forceinline__ bool is_second(int place) const {
    return s == 1 ? place >> 1 : s == 2 ? lane & 1 : s == 4 ? lane & 2 : place & 1;
  }
  // One level inside the tile: x and y of all rows, z and z' from the pairs that level s parts.
  template <int s>
  __device__ __forceinline__ void level(GatePending& gates, Share& kept) {
    Share weight, x, y;
    {
      TileRows rows;
      load(rows);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int i = e >> 2, p = e & 3;
        const bool later = is_second<s>(p);
        weight[i][p] =
            s == 1 ? 1.0f : power_of_two(decays.template exponent<ExclusiveForward, s>(i, p, lane));
        x[i][p] = (later ? rows.r[i][p] : rows.k[i][p]) * of_x(weight[i][p], later, i, p);
        y[i][p] = (later ? rows.a[i][p] : rows.b[i][p]) * weight[i][p];
      }
    }
    Accumulator z[2], other[2];
    multiply_level<s>(z, other, Operand::of(x), Operand::of(y));
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const bool later = is_second<s>(p);
      const float of_z = element(z, i, p), of_other = element(other, i, p), first = x[i][p] * of_z;
      add_sums(later, of_x(weight[i][p], later, i, p), weight[i][p], of_z, of_other, i, p);
      gates.add(i, p, later, fused(y[i][p], of_other, first));
      kept[i][p] = later ? kept[i][p] + first : kept[i][p];
    }
  }
  // z and z' of the pairs of a tile that differ in bit s first.
  template <int s>
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
  template <class To>
  __device__ __forceinline__ void finish(const GatePending& gates, const Share& kept, const To& to) const {
    TileRows rows, d;
    Share dw;
    load(rows);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3, token = 16 * tile + element_of(p, lane);
      const float m = shared.diagonals()[token], n = shared.diagonals()[64 + token];
      d.r[i][p] = fused(n, rows.b[i][p], fused(m, rows.k[i][p], element(c.queries, i, p)));
      d.k[i][p] = fused(m, rows.r[i][p], element(c.keys, i, p));
      d.a[i][p] = element(c.readers, i, p);
      d.b[i][p] = fused(n, rows.r[i][p], element(c.writers, i, p));
      dw[i][p] = gates.dg[i][p] + kept[i][p];
    }
    to.put(shared, 16 * tile, column, lane, d, dw);
  }
};

}  // namespace general
