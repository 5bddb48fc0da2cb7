// gla.chunk, backward: dq, dk and dg of a chunk. A block owns one chunk, one head and 64 key channels, 16 per
// warp, all 64 tokens. With M_ij = scale do_i . v_j and D the gradient of the state at the chunk's end,
//   dq_i = e^{G_i} scale S do_i   + sum_{j<=i} M_ij k_j e^{G_i - G_j}
//   dk_j = e^{L - G_j} D v_j      + sum_{i>=j} M_ij q_i e^{G_i - G_j}
//   dg_t = e^L rowsum(S (.) D)    + sum_{i>=t} q_i e^{G_i} scale (S do_i) + sum_{j<t} k_j e^{L - G_j} (D v_j)
//          + sum_{j<t<=i} q_i e^{G_i - G_j} k_j M_ij
// Pairs are split as in chunk_scores.cuh: with s the highest bit in which i and j differ, i lies in the
// second and j in the first half of an aligned block of 2 s rows, and with x_i = q_i e^{F_s[i]}, x_j = k_j
// e^{B_s[j]}
//   z_i = sum_{j first} M_ij x_j,   z_j = sum_{i second} M_ij x_i
// are one product, which gives dq_i its e^{F_s[i]} z_i and dk_j its e^{B_s[j]} z_j, and x z is what the
// rows's pairs contribute to dg: a second half to all its rows from its start to i, a first half to those
// after j. All terms of dg are products along paths; nothing is ever the difference of larger terms.
//
// Exclusive readouts (rwkv6): G_{i-1} in place of G_i, j < t < i in dg, and for j = i the bonus u in place of
// the weight 1, whose gradient is the sum of M_ii q_i k_i.
#pragma once
#include "chunk_state.cuh"
#include "gate_gradient.cuh"

// A block's shared memory. `Query`: the format of q.
template <class Format, class Gate, class Query>
struct KeyShared {
  using Plain = typename StateOf<Format>::Type;
  using QueryTile = Tile<Query, 64>;
  using KeyTile = Tile<Format, 64>;
  using GateTile = Tile<Gate, 64>;
  using ValueTile = Tile<Format, 64>;
  using StateTile = Tile<Plain, 64>;
  static constexpr assay::channel::KeysLayout layout{
      sizes_of_format<Format>, int(sizeof(typename Gate::Bits)), int(sizeof(typename Query::Bits))};
  static constexpr bool early = layout.early;
  char* base;

  __device__ char* cotangents() const { return base; }
  __device__ char* values() const { return at<layout.values_offset>(); }
  __device__ char* states() const { return at<layout.states_offset>(); }
  __device__ char* adjoints() const { return at<layout.adjoints_offset>(); }
  __device__ char* products() const { return base; }
  __device__ float* diagonal() const { return reinterpret_cast<float*>(at<layout.diagonal_offset>()); }
  __device__ char* queries() const { return at<layout.queries_offset>(); }
  __device__ char* keys() const { return at<layout.keys_offset>(); }
  __device__ char* gates() const { return at<layout.gates_offset>(); }

 private:
  template <int offset>
  __device__ char* at() const {
    return base + offset;
  }
};

// A block's part of the tensors of q, k and g, and of their gradients.
struct KeyPlace {
  i64 at, stride;      // of its first token and channel, and from token to token
  int rows, channels;  // tokens of the chunk, channels from the first on
  bool vector;
};

// Where gradients go: into the tiles of what they are the gradients of, and from there to tensors of the same
// formats; dg may be null.
template <class Format, class Gate>
struct GradientTensors {
  static constexpr bool of_keys = true;
  typename Format::Bits *dq, *dk;
  typename Gate::Bits* dg;

  template <class Shared>
  __device__ __forceinline__ void put(const Shared& shared, const KeyPlace&, int row, int column, int lane,
                                      const Share& q, const Share& k, const Share& g) const {
    __syncwarp();  // every lane has read what is overwritten
    Fragment<typename Shared::QueryTile, Format>::store_columns(shared.queries(), q, row, column, lane);
    Fragment<typename Shared::KeyTile, Format>::store_columns(shared.keys(), k, row, column, lane);
    Fragment<typename Shared::GateTile, Gate>::store_columns(shared.gates(), g, row, column, lane);
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared& shared, const KeyPlace& place) const {
    __syncthreads();
    store<typename Shared::QueryTile>(dq, shared.queries(), place);
    store<typename Shared::KeyTile>(dk, shared.keys(), place);
    if (dg != nullptr) store<typename Shared::GateTile>(dg, shared.gates(), place);
  }
  template <class T>
  static __device__ __forceinline__ void store(typename T::Bits* to, const char* tile,
                                               const KeyPlace& place) {
    store_tile<T, 128>(to + place.at, tile, place.stride, place.rows, place.channels, place.vector);
  }
};

// One warp's share of the contractions over the value channels; without `of_keys` only what dq takes.
template <class Format, class Gate, class Query, bool of_keys>
struct ValueContractions {
  using Shared = KeyShared<Format, Gate, Query>;
  using Operand = typename OperandOf<Format>::Type;
  using Plain = typename Shared::Plain;
  using Values = Fragment<typename Shared::ValueTile, Format>;
  using States = Fragment<typename Shared::StateTile, Plain>;
  Accumulator products[4][2];             // do_i . v_j: rows i of the warp's 16 tokens, tile of j
  Accumulator queries[4][2], keys[4][2];  // S do and D v: 16 key channels x tokens, tile by tile
  float carried[2];                       // rowsum(S (.) D) over the lane's value channels

  __device__ void clear() {
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        products[tile][half].clear(), queries[tile][half].clear(), keys[tile][half].clear();
    carried[0] = carried[1] = 0.0f;
  }
  // Adds 16 value channels.
  __device__ __forceinline__ void add(const Shared& shared, int value, int warp, int lane) {
    const Operand own = Values::template row_operand<Operand>(shared.cotangents(), 16 * warp, value, lane);
    const Operand state = States::template column_operand<Operand>(shared.states(), value, 16 * warp, lane);
    Operand adjoint;
    if constexpr (of_keys) {
      adjoint = States::template column_operand<Operand>(shared.adjoints(), value, 16 * warp, lane);
      Share s, d;
      States::columns(s, shared.states(), value, 16 * warp, lane);
      States::columns(d, shared.adjoints(), value, 16 * warp, lane);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        carried[i >> 2] = fused(s[i >> 2][i & 3], d[i >> 2][i & 3], carried[i >> 2]);
    }
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      const Operand v = Values::template row_operand<Operand>(shared.values(), 16 * tile, value, lane);
      const Operand d_o = Values::template row_operand<Operand>(shared.cotangents(), 16 * tile, value, lane);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (tile <= warp) multiply(products[tile][half], own, v, half);
        multiply(queries[tile][half], state, d_o, half);
        if constexpr (of_keys) multiply(keys[tile][half], adjoint, v, half);
      }
    }
  }
  // scale times the products to shared memory, tile (i, j) for i >= j; tiles on the diagonal as symmetric
  // matrices, whose diagonal stands apart in fp32 and is not taken from there.
  __device__ __forceinline__ void store_products(const Shared& shared, float scale, int warp, int lane) {
    using T = typename Shared::StateTile;
    const auto place = [&](int row, int column) {
      return reinterpret_cast<typename Plain::Bits*>(shared.products() + T::offset(row, column));
    };
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      if (tile > warp) continue;
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const int row = 16 * warp + (lane >> 2) + 8 * ((r >> 1) & 1),
                  column = 16 * tile + 2 * (lane & 3) + (r & 1) + 8 * (r >> 2);
        const float x = products[tile][r >> 2].r[r & 3] * scale;
        if (row == column) shared.diagonal()[row] = x;
        if (column > row) continue;
        *place(row, column) = Plain::encode(x);
        if (tile == warp && column < row) *place(column, row) = Plain::encode(x);
      }
    }
  }
};

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

  // First pass over a tile: what comes from other chunks; x of both levels between tiles.
  __device__ __forceinline__ void across_chunks(int tile, float scale, Share& x16, Share& x32) {
    Share q, k;
    TileDecays decays;
    queries(q, tile);
    Keys::columns(k, shared.keys(), 16 * tile, column, lane);
    decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * tile, column, lane);
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
    const Operand m =
        tile > from
            ? Products::template row_operand<Operand>(shared.products(), 16 * tile, 16 * from, lane)
            : Products::template column_operand<Operand>(shared.products(), 16 * from, 16 * tile, lane);
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
  __device__ __forceinline__ void within_chunk(int tile, const Share (&x16)[4], const Share (&x32)[4],
                                               float (&partner32)[2]) {
    Share q, k;
    TileDecays decays;
    queries(q, tile);
    Keys::columns(k, shared.keys(), 16 * tile, column, lane);
    decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * tile, column, lane);
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

// Where a block's tensors begin, and how they come into its shared memory. Of q, k and g: the block's first
// token and channel; of do and v: its first token; of S and D: the chunk's, the block's first key channel.
template <class Format, class Gate, class Query, class Gradients>
struct KeyInputs {
  using Shared = KeyShared<Format, Gate, Query>;
  using StateBits = typename Shared::Plain::Bits;
  const typename Query::Bits* q;
  const typename Format::Bits* k;
  const typename Gate::Bits* g;  // or null
  const typename Format::Bits *d_o, *v;
  const StateBits *S, *D;
  KeyPlace place;
  i64 value_stride;            // from token to token
  int values, padded_values;   // channels
  int padded_keys, live_keys;  // of the states' rows; from the block's first on

  __device__ __forceinline__ void load_keys(const Shared& shared) const {
    if constexpr (Gradients::of_keys)
      load_tile<typename Shared::QueryTile, 128>(shared.queries(), q, place.stride, place.rows,
                                                 place.channels, place.vector);
    load_tile<typename Shared::KeyTile, 128>(shared.keys(), k, place.stride, place.rows, place.channels,
                                             place.vector);
    if (g != nullptr)
      load_tile<typename Shared::GateTile, 128>(shared.gates(), g, place.stride, place.rows, place.channels,
                                                place.vector);
    else
#pragma unroll 1
      for (int i = int(threadIdx.x); i < Shared::GateTile::bytes / 4; i += 128)
        reinterpret_cast<u32*>(shared.gates())[i] = 0;
  }
  // 64 value channels from `begin` on.
  __device__ __forceinline__ void load_values(const Shared& shared, int begin) const {
    load_tile<typename Shared::ValueTile, 128>(shared.cotangents(), d_o + begin, value_stride, place.rows,
                                               values - begin, place.vector);
    load_tile<typename Shared::ValueTile, 128>(shared.values(), v + begin, value_stride, place.rows,
                                               values - begin, place.vector);
    const i64 from = i64(begin) * padded_keys;
    const int live = padded_values - begin;
    load_tile<typename Shared::StateTile, 128>(shared.states(), S + from, padded_keys, live, live_keys, true);
    if constexpr (Gradients::of_keys)
      load_tile<typename Shared::StateTile, 128>(shared.adjoints(), D + from, padded_keys, live, live_keys,
                                                 true);
  }
};

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
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int K = shape.key_channels, V = shape.value_channels, key_blocks = (K + 63) / 64;
  const int key_begin = int(blockIdx.x) % key_blocks * 64, block = int(blockIdx.x) / key_blocks;
  const int head = block % shape.heads, chunk = block / shape.heads;
  const i64 first = chunks[2 * i64(chunk)];
  const int rows = int(chunks[2 * i64(chunk) + 1]);
  const i64 token = first * shape.heads + head;
  const i64 keys_at = token * K + key_begin, values_at = token * V;
  const int padded_keys = shape.key_groups() * 16, padded_values = shape.value_groups() * 16;
  const i64 state_at = (i64(chunk) * shape.heads + head) * padded_values * padded_keys + key_begin;

  const KeyPlace place{keys_at, i64(shape.heads) * K, rows, K - key_begin, shape.vector};
  using Inputs = KeyInputs<Format, Gate, Query, Gradients>;
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

  using Channels = KeyGradients<Format, Gate, Pass, Query, Gradients>;
  typename Channels::Contractions contractions;
  contractions.clear();
  in.load_values(shared, 0);
  if (Shared::early) in.load_keys(shared);
  commit_copies();
  for (int begin = 0; begin < V; begin += 64) {
    wait_copies<0>();
    __syncthreads();
    const int groups = min(4, shape.value_groups() - (begin >> 4));
#pragma unroll 1
    for (int group = 0; group < groups; ++group) contractions.add(shared, 16 * group, warp, lane);
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
  contractions.store_products(shared, scale, warp, lane);
  if constexpr (Gradients::of_keys)
    for (float& carried : contractions.carried) carried = Channels::over_lanes(carried);
  wait_copies<0>();
  __syncthreads();

  Channels gradients(shared, contractions, to, place, warp, lane);
  const int first_key = key_begin + 16 * warp + (lane >> 2);  // the lane's channels: this one and 8 further
  if constexpr (Pass::exclusive)
    for (int i = 0; i < 2; ++i)
      if (first_key + 8 * i < K) gradients.bonus[i] = Format::decode(u[i64(head) * K + first_key + 8 * i]);
  Share x16[4], x32[4];
#pragma unroll
  for (int tile = 0; tile < 4; ++tile) gradients.across_chunks(tile, scale, x16[tile], x32[tile]);
  float partner32[2] = {0.0f, 0.0f};
  gradients.within_chunk(0, x16, x32, partner32);
  gradients.within_chunk(1, x16, x32, partner32);
  partner32[0] = partner32[1] = 0.0f;
  gradients.within_chunk(3, x16, x32, partner32);
  gradients.within_chunk(2, x16, x32, partner32);
  if constexpr (Pass::exclusive)
    for (int i = 0; i < 2; ++i) {
      const float sum = gradients.over_lanes(gradients.bonus_sum[i]);
      if ((lane & 3) == 0 && first_key + 8 * i < K)
        du[(i64(chunk) * shape.heads + head) * K + first_key + 8 * i] = sum;
    }
  to.finish(shared, place);
}
