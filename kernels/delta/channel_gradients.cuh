// dq, dk and dg of a chunk of kda, whose decays are of key channels: sums as in token_gradients.cuh, each
// channel with its own decays, pairs of tokens split where the bits of i and j first differ, as
// channel/chunk_keys.cuh has them. With x_i = q_i e^{F_s[i]} on the later and x_j = k_j e^{B_s[j]} on the
// earlier side of a block of 2 s rows, y = k with the same weight on both,
//   z_i = sum_j M_ij x_j,  z_j = sum_i M_ij x_i       r_i = sum_j N_ij y_j,  r_j = sum_i N_ij y_i
// dq_i gets e^{F_s[i]} z_i, dk_j e^{B_s[j]} z_j, and both dk_i and dk_j lose their weight times r; x z -
// y r is what the row's pairs contribute to dg. A block owns a chunk, a head and 64 key channels, 16 per
// warp, all 64 tokens.
#pragma once
#include "../channel/gate_gradient.cuh"
#include "../channel/pass.cuh"
#include "../channel/value_contractions.cuh"
#include "gradient_inputs.cuh"

namespace rule {

// A block's shared memory.
template <class Format, class Gate>
struct ChannelShared {
  using Kept = typename StateOf<Format>::Type;
  using InputTile = Tile<Format, 64>;
  using QueryTile = InputTile;
  using KeyTile = InputTile;
  using GateTile = Tile<Gate, 64>;
  using KeptTile = Tile<Kept, 64>;
  static constexpr assay::delta::ChannelGradientLayout layout{sizes_of_format<Format>,
                                                              int(sizeof(typename Gate::Bits))};
  char* base;

  __device__ char* cotangents() const { return base; }
  __device__ char* updates() const { return at<layout.updates_offset>(); }
  __device__ char* pulls() const { return at<layout.pulls_offset>(); }
  __device__ char* states() const { return at<layout.states_offset>(); }
  __device__ char* adjoints() const { return at<layout.adjoints_offset>(); }
  __device__ char* weights() const { return base; }
  __device__ char* removals() const { return at<layout.removals_offset>(); }
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

// How a block's tensors come into its shared memory: channels from `key` on; gates from the head's first on.
template <class Format, class Gate>
struct ChannelInputs {
  using Shared = ChannelShared<Format, Gate>;
  const GradientInputs<Format>& in;
  const typename Gate::Bits* gates;  // or null
  int key;

  __device__ __forceinline__ void load_keys(const Shared& shared) const {
    const int channels = in.shape.key_channels - key;
    load<typename Shared::InputTile>(shared.queries(), in.q + key, in.key_stride, channels);
    load_keys_and_gates(shared, in.k + key, in.key_stride, gates == nullptr ? nullptr : gates + key,
                        i64(in.shape.heads) * in.shape.key_channels, in.rows, channels, in.shape.vector);
  }
  // 64 value channels from `value` on.
  __device__ __forceinline__ void load_values(const Shared& shared, int value) const {
    using KeptTile = typename Shared::KeptTile;
    const int channels = in.shape.value_channels - value, padded_keys = 16 * in.shape.key_groups(),
              padded_values = 16 * in.shape.value_groups();
    load<typename Shared::InputTile>(shared.cotangents(), in.d_o + value, in.value_stride, channels);
    load<KeptTile>(shared.updates(), in.updates + value, in.value_stride, channels);
    load<KeptTile>(shared.pulls(), in.pulls + value, in.value_stride, channels);
    const i64 from = i64(value) * padded_keys + key;
    load_tile<KeptTile, 128>(shared.states(), in.S + from, padded_keys, padded_values - value,
                             padded_keys - key, true);
    load_tile<KeptTile, 128>(shared.adjoints(), in.D + from, padded_keys, padded_values - value,
                             padded_keys - key, true);
  }

 private:
  template <class T>
  __device__ __forceinline__ void load(char* to, const typename T::Bits* from, i64 stride,
                                       int channels) const {
    load_tile<T, 128>(to, from, stride, in.rows, channels, in.shape.vector);
  }
};

// One warp's share of the contractions over the value channels.
template <class Format, class Gate>
struct RuleContractions {
  using Shared = ChannelShared<Format, Gate>;
  using Operand = typename OperandOf<Format>::Type;
  using Kept = typename Shared::Kept;
  using Inputs = Fragment<typename Shared::InputTile, Format>;
  using KeptValues = Fragment<typename Shared::KeptTile, Kept>;
  Accumulator weights[4][2], removals[4][2];  // do_i . u_j, dr_i . u_j: rows i of the warp's, tile of j
  Accumulator queries[4][2], keys[4][2], reads[4][2];  // S do, D u, S dr: 16 key channels x tokens, by tiles
  float carried[2];                                    // rowsum(S (.) D) over the lane's value channels

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        weights[tile][half].clear(), removals[tile][half].clear(), queries[tile][half].clear(),
            keys[tile][half].clear(), reads[tile][half].clear();
    carried[0] = carried[1] = 0.0f;
  }
  // Adds 16 value channels.
  __device__ __forceinline__ void add(const Shared& shared, int value, int warp, int lane) {
    const Operand own = Inputs::template row_operand<Operand>(shared.cotangents(), 16 * warp, value, lane),
                  own_pull =
                      KeptValues::template row_operand<Operand>(shared.pulls(), 16 * warp, value, lane),
                  state =
                      KeptValues::template column_operand<Operand>(shared.states(), value, 16 * warp, lane),
                  adjoint =
                      KeptValues::template column_operand<Operand>(shared.adjoints(), value, 16 * warp, lane);
    Share s, d;
    KeptValues::columns(s, shared.states(), value, 16 * warp, lane);
    KeptValues::columns(d, shared.adjoints(), value, 16 * warp, lane);
    add_products(carried, s, d);
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      const Operand u = KeptValues::template row_operand<Operand>(shared.updates(), 16 * tile, value, lane),
                    d_o = Inputs::template row_operand<Operand>(shared.cotangents(), 16 * tile, value, lane),
                    pull = KeptValues::template row_operand<Operand>(shared.pulls(), 16 * tile, value, lane);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (tile <= warp)
          multiply(weights[tile][half], own, u, half), multiply(removals[tile][half], own_pull, u, half);
        multiply(queries[tile][half], state, d_o, half);
        multiply(keys[tile][half], adjoint, u, half);
        multiply(reads[tile][half], state, pull, half);
      }
    }
  }
  // M and N to shared memory; of M the diagonal, too.
  __device__ __forceinline__ void store(const Shared& shared, float scale, int warp, int lane) {
    using T = typename Shared::KeptTile;
    store_pairs<T>(shared.weights(), shared.diagonal(), weights, scale, warp, lane);
    store_pairs<T>(shared.removals(), nullptr, removals, 1.0f, warp, lane);
  }
};

// The four tiles of a chunk: log decays from before the chunk to a row, and from the row to the chunk's
// end, as far as they lie in the row's 32.
struct TileTotals {
  float total[4][2];  // gates of a tile, log2

  template <class T, class Gate>
  __device__ __forceinline__ void load(const char* gates, int column, int lane) {
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      TileDecays decays;
      decays.template load<T, Gate>(gates, 16 * tile, column, lane);
      total[tile][0] = decays.total(0), total[tile][1] = decays.total(1);
    }
  }
  __device__ __forceinline__ float of_half(int half, int i) const {
    return total[2 * half][i] + total[2 * half + 1][i];
  }
};

// One row's decays by both levels between tiles, and to the chunk's ends.
struct RowDecays {
  float from_start, to_end, level16, level32;

  __device__ __forceinline__ RowDecays(const TileTotals& totals, const TileDecays& decays, int tile, int i,
                                       int place, int lane) {
    const float up_to_16 = decays.template up_to<Forward>(i, place, lane, 3),
                after_16 = decays.after(i, place, lane, 3),
                up_to_32 = ((tile & 1) ? totals.total[tile ^ 1][i] : 0.0f) + up_to_16,
                after_32 = ((tile & 1) ? 0.0f : totals.total[tile ^ 1][i]) + after_16;
    from_start = (tile >= 2 ? totals.of_half(0, i) : 0.0f) + up_to_32;
    to_end = (tile < 2 ? totals.of_half(1, i) : 0.0f) + after_32;
    level16 = (tile & 1) ? up_to_16 : after_16, level32 = tile >= 2 ? up_to_32 : after_32;
  }
};

// Where the gradients of a block go: of q, k and g into their tiles and from there to tensors; where value
// heads share keys, those of q and k as fp32 for each of them.
template <class Format, class Gate>
struct ChannelGradientsTo {
  GradientTensors<Format, Gate> stored;  // dq: null where value heads share keys
  float *dqs, *dks;
  KeyPlace place;

  template <class Shared>
  __device__ __forceinline__ void put(const Shared& shared, int row, int column, int lane, const Share& dq,
                                      const Share& dk, const Share& dg) const {
    stored.put(shared, place, row, column, lane, dq, dk, dg);
    if (stored.dq != nullptr) return;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int token = row + element_of(e & 3, lane), channel = column + (lane >> 2) + 8 * (e >> 2);
      if (token >= place.rows || channel >= place.channels) continue;
      const i64 at = place.at + token * place.stride + channel;
      dqs[at] = dq[e >> 2][e & 3], dks[at] = dk[e >> 2][e & 3];
    }
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared& shared) const {
    if (stored.dq != nullptr) return stored.finish(shared, place);
    __syncthreads();
    if (stored.dg != nullptr)
      GradientTensors<Format, Gate>::template store<typename Shared::GateTile>(stored.dg, shared.gates(),
                                                                               place);
  }
};

// One warp's 16 key channels, after the contractions over values.
template <class Format, class Gate>
struct ChannelGradients {
  using Contractions = RuleContractions<Format, Gate>;
  using Shared = typename Contractions::Shared;
  using Operand = typename Contractions::Operand;
  using Inputs = Fragment<typename Shared::InputTile, Format>;
  using Products = Fragment<typename Shared::KeptTile, typename Shared::Kept>;
  const Shared& shared;
  Contractions& c;
  int column, lane;  // the warp's first key channel in the tiles
  TileTotals totals;
  float ends[4][2], starts[4][2];  // of a tile: what crosses chunks and ends in it, or starts
  // x and y of both levels between tiles; where a tile is on the earlier side y is x.
  Operand x16[4], x32[4], y16[2], y32[2];
  float partner[2];  // x z - y r of level 32 over the tile of the same half that was done before

  __device__ __forceinline__ ChannelGradients(const Shared& s, Contractions& contractions, int warp, int lane)
      : shared(s), c(contractions), column(16 * warp), lane(lane) {
    totals.template load<typename Shared::GateTile, Gate>(shared.gates(), column, lane);
  }
  __device__ __forceinline__ const Operand& y16_of(int tile) const {
    return (tile & 1) ? y16[tile >> 1] : x16[tile];
  }
  __device__ __forceinline__ const Operand& y32_of(int tile) const {
    return tile >= 2 ? y32[tile & 1] : x32[tile];
  }
  static __device__ __forceinline__ float over_lanes(float x) {
    x = x + __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
  }
  __device__ __forceinline__ void load(Share& q, Share& k, TileDecays& decays, int tile) const {
    Inputs::columns(q, shared.queries(), 16 * tile, column, lane);
    Inputs::columns(k, shared.keys(), 16 * tile, column, lane);
    decays.template load<typename Shared::GateTile, Gate>(shared.gates(), 16 * tile, column, lane);
  }

  // First pass over a tile: what comes from other chunks; x and y of both levels between tiles.
  __device__ __forceinline__ void across_chunks(int tile, float scale) {
    Share q, k, x, y, far_x, far_y;
    TileDecays decays;
    load(q, k, decays, tile);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float ending = 0.0f, starting = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const RowDecays row(totals, decays, tile, i, p, lane);
        float &dq = element(c.queries[tile], i, p), &dk = element(c.keys[tile], i, p),
              &read = element(c.reads[tile], i, p);
        const float from_start = power_of_two(row.from_start), near = power_of_two(row.level16),
                    far = power_of_two(row.level32);
        dq = dq * (from_start * scale), read = read * from_start, dk = dk * power_of_two(row.to_end);
        ending = fused(-k[i][p], read, fused(q[i][p], dq, ending)), starting = fused(k[i][p], dk, starting);
        y[i][p] = k[i][p] * near, x[i][p] = (tile & 1) ? q[i][p] * near : y[i][p];
        far_y[i][p] = k[i][p] * far, far_x[i][p] = tile >= 2 ? q[i][p] * far : far_y[i][p];
      }
      ends[tile][i] = over_lanes(ending), starts[tile][i] = over_lanes(starting);
    }
    x16[tile] = Operand::of(x), x32[tile] = Operand::of(far_x);
    if (tile & 1) y16[tile >> 1] = Operand::of(y);
    if (tile >= 2) y32[tile & 1] = Operand::of(far_y);
  }

  // Sums over the tokens of another tile: M or N, or their transposes.
  __device__ __forceinline__ void add_tile(Accumulator (&z)[2], const char* products, const Operand& x,
                                           int tile, int from) const {
    const Operand m = tile > from
                          ? Products::template row_operand<Operand>(products, 16 * tile, 16 * from, lane)
                          : Products::template column_operand<Operand>(products, 16 * from, 16 * tile, lane);
    multiply(z[0], x, m, 0);
    multiply(z[1], x, m, 1);
  }

  // Second pass over a tile; the first tile of a half has partner = 0.
  template <class To>
  __device__ __forceinline__ void within_chunk(int tile, const To& to) {
    Share q, k;
    TileDecays decays;
    load(q, k, decays, tile);
    GatePending gates;
    begin(tile, q, k, decays, gates);
    Share m, n;
    Products::rows(m, shared.weights(), 16 * tile, 16 * tile, lane);
    Products::rows(n, shared.removals(), 16 * tile, 16 * tile, lane);
    gates.descend_to_eight();
    level<8>(decays, q, k, m, n, tile, gates);
    gates.template descend<2>(lane);
    level<4>(decays, q, k, m, n, tile, gates);
    gates.template descend<1>(lane);
    level<2>(decays, q, k, m, n, tile, gates);
    gates.descend_to_rows();
    level<1>(decays, q, k, m, n, tile, gates);
    finish(tile, q, k, gates, to);
  }

 private:
  // What comes from other chunks and tiles.
  __device__ __forceinline__ void begin(int tile, const Share& q, const Share& k, const TileDecays& decays,
                                        GatePending& gates) {
    Accumulator z16[2], z32[2], r16[2], r32[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) z16[h].clear(), z32[h].clear(), r16[h].clear(), r32[h].clear();
    add_tile(z16, shared.weights(), x16[tile ^ 1], tile, tile ^ 1);
    add_tile(r16, shared.removals(), y16_of(tile ^ 1), tile, tile ^ 1);
#pragma unroll
    for (int other = 0; other < 2; ++other) {
      const int from = (tile < 2 ? 2 : 0) + other;
      add_tile(z32, shared.weights(), x32[from], tile, from);
      add_tile(r32, shared.removals(), y32_of(from), tile, from);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float everywhere =
          c.carried[i] * power_of_two(totals.of_half(0, i) + totals.of_half(1, i)) + partner[i];
#pragma unroll
      for (int other = 0; other < 4; ++other) {
        if (other > tile) everywhere = everywhere + ends[other][i];
        if (other < tile) everywhere = everywhere + starts[other][i];
      }
      float of_32 = 0.0f;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const RowDecays row(totals, decays, tile, i, p, lane);
        const float near = power_of_two(row.level16), far = power_of_two(row.level32);
        float &dq = element(c.queries[tile], i, p), &dk = element(c.keys[tile], i, p);
        const float read = element(c.reads[tile], i, p), z = element(z16, i, p), far_z = element(z32, i, p),
                    r = element(r16, i, p), far_r = element(r32, i, p);
        const float of_16 = fused(-(k[i][p] * near), r, ((tile & 1) ? q[i][p] : k[i][p]) * near * z),
                    of_far = fused(-(k[i][p] * far), far_r, (tile >= 2 ? q[i][p] : k[i][p]) * far * far_z);
        gates.dg[i][p] = everywhere;
        gates.ends[i][p] = fused(-k[i][p], read, q[i][p] * dq), gates.starts[i][p] = k[i][p] * dk;
        gates.add(i, p, tile >= 2, of_far);
        gates.add(i, p, tile & 1, of_16);
        of_32 = of_32 + of_far;
        dk = fused(-near, r, fused(-far, far_r, dk - read));
        (tile >= 2 ? dq : dk) = fused(far, far_z, tile >= 2 ? dq : dk);
        ((tile & 1) ? dq : dk) = fused(near, z, (tile & 1) ? dq : dk);
      }
      partner[i] = over_lanes(of_32);
    }
  }

  template <int s>
  __device__ __forceinline__ bool is_second(int place) const {
    return s == 1 ? place >> 1 : s == 2 ? lane & 1 : s == 4 ? lane & 2 : place & 1;
  }
  // One level inside a tile: x and y of all rows, z and r from the pairs that level s parts.
  template <int s>
  __device__ __forceinline__ void level(const TileDecays& decays, const Share& q, const Share& k,
                                        const Share& m, const Share& n, int tile, GatePending& gates) {
    Share factor, x, y, of_m, of_n;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3, apart = ((lane >> 2) + 8 * i) ^ element_of(p, lane);
      const bool parted = apart >= s && apart < 2 * s;
      factor[i][p] = power_of_two(decays.template exponent<Forward, s>(i, p, lane));
      y[i][p] = k[i][p] * factor[i][p], x[i][p] = (is_second<s>(p) ? q[i][p] : k[i][p]) * factor[i][p];
      of_m[i][p] = parted ? m[i][p] : 0.0f, of_n[i][p] = parted ? n[i][p] : 0.0f;
    }
    Accumulator z[2], r[2];
    z[0].clear(), z[1].clear(), r[0].clear(), r[1].clear();
    multiply_both(z, x, of_m), multiply_both(r, y, of_n);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const float sum = element(z, i, p), removed = element(r, i, p);
      const bool second = is_second<s>(p);
      float &dq = element(c.queries[tile], i, p), &dk = element(c.keys[tile], i, p);
      const float kept = fused(-factor[i][p], removed, dk);
      const float gradient = fused(factor[i][p], sum, second ? dq : kept);
      dq = second ? gradient : dq, dk = second ? kept : gradient;
      gates.add(i, p, second, fused(-y[i][p], removed, x[i][p] * sum));
    }
  }
  static __device__ __forceinline__ void multiply_both(Accumulator (&z)[2], const Share& x,
                                                       const Share& pairs) {
    const Operand a = Operand::of(x), b = Operand::of(pairs);
    multiply(z[0], a, b, 0);
    multiply(z[1], a, b, 1);
  }

  // Adds each token's pair with itself.
  template <class To>
  __device__ __forceinline__ void finish(int tile, const Share& q, const Share& k, const GatePending& gates,
                                         const To& to) const {
    Share dq, dk, dg;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e >> 2, p = e & 3;
      const float same = shared.diagonal()[16 * tile + element_of(p, lane)];
      dq[i][p] = fused(same, k[i][p], element(c.queries[tile], i, p));
      dk[i][p] = fused(same, q[i][p], element(c.keys[tile], i, p));
      dg[i][p] = gates.dg[i][p] + gates.ends[i][p];
    }
    to.put(shared, 16 * tile, column, lane, dq, dk, dg);
  }
};

template <class Format, class Gate>
__device__ __forceinline__ void channel_gradients(const GradientInputs<Format>& in,
                                                  const typename Gate::Bits* gates, int key,
                                                  const ChannelGradientsTo<Format, Gate>& to, float scale,
                                                  char* base) {
  using Shared = ChannelShared<Format, Gate>;
  const Shared shared{base};
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const ChannelInputs<Format, Gate> inputs{in, gates, key};
  RuleContractions<Format, Gate> contractions;
  contractions.clear();
  inputs.load_values(shared, 0);
  if (Shared::layout.early) inputs.load_keys(shared);
  commit_copies();
  for (int begin = 0; begin < in.shape.value_channels; begin += 64) {
    wait_copies<0>();
    __syncthreads();
    const int groups = min(4, in.shape.value_groups() - (begin >> 4));
#pragma unroll 1
    for (int group = 0; group < groups; ++group) contractions.add(shared, 16 * group, warp, lane);
    __syncthreads();  // everyone is done with these value channels
    if (begin + 64 < in.shape.value_channels) {
      inputs.load_values(shared, begin + 64);
      commit_copies();
    }
  }
  if (!Shared::layout.early) {
    inputs.load_keys(shared);
    commit_copies();
  }
  contractions.store(shared, scale, warp, lane);
  for (float& carried : contractions.carried) carried = ChannelGradients<Format, Gate>::over_lanes(carried);
  wait_copies<0>();
  __syncthreads();

  ChannelGradients<Format, Gate> gradients(shared, contractions, warp, lane);
#pragma unroll
  for (int tile = 0; tile < 4; ++tile) gradients.across_chunks(tile, scale);
#pragma unroll
  for (int at = 0; at < 4; ++at) {
    const int tile = at < 2 ? at : 5 - at;
    if ((at & 1) == 0) gradients.partner[0] = gradients.partner[1] = 0.0f;
    gradients.within_chunk(tile, to);
  }
  to.finish(shared);
}

}  // namespace rule
