// dq, dk and dg of a chunk of the delta rules whose decays are of tokens, or that have none. With u and
// dr what the scans kept of its tokens, S the state at its start and D its gradient at its end,
//   M_ij = scale (do_i . u_j) e^{G_i - G_j}, j <= i         N_ij = (dr_i . u_j) e^{G_i - G_j}, j < i
//   dq_i = e^{G_i} scale S do_i  + sum_{j<=i} M_ij k_j
//   dk_j = e^{L - G_j} D u_j     + sum_{i>=j} M_ij q_i  - sum_{i>j} N_ij k_i       (what the token wrote)
//          - e^{G_j} S dr_j      - sum_{i<j} N_ji k_i                              (what it read)
//   dg_t = e^L <S, D> + sum_{i>=t} (q_i . dq_i - k_i . S dr_i) + sum_{j<t} k_j . D u_j
//          + sum_{j<t<=i} (M_ij q_i - N_ij k_i) . k_j,
// in the last line of dq, D u and S dr only what comes from other chunks, with their decays: all paths from
// before a token to it or later ones, nothing subtracted but what a delta rule takes away
// (gate_sums.cuh). A block owns one chunk and head, each of its 4 warps 16 tokens; M and N are made once and
// lie in shared memory for all of them.
#pragma once
#include "../scalar/chunk_rows.cuh"
#include "gate_sums.cuh"
#include "gradient_tiles.cuh"

namespace rule {

// Where a gradient of queries or keys goes, from a warp's first token on: stored, or as fp32 for each value
// head, where several share one.
template <class Format>
struct GradientRows {
  typename Format::Bits* stored;
  float* of_value_heads;
  Shape shape;
  int live_rows;

  __device__ __forceinline__ GradientRows(typename Format::Bits* stored, float* of_value_heads, i64 at,
                                          const Shape& shape, int live_rows)
      : stored(stored == nullptr ? nullptr : stored + at),
        of_value_heads(stored == nullptr ? of_value_heads + at : nullptr),
        shape(shape),
        live_rows(live_rows) {}
  // 64 key channels.
  template <class Rows>
  __device__ __forceinline__ void store(const Rows& out, int step, int lane) const {
    if (stored != nullptr)
      out.template store<Format>(stored, 64 * step, shape.key_channels, live_rows, 1.0f, shape, lane);
    else
      out.template store<Fp32>(of_value_heads, 64 * step, shape.key_channels, live_rows, 1.0f, shape, lane);
  }
};

template <class Format, class Gate>
struct TokenGradients {
  using Tiles = GradientTiles<Format>;
  template <int which>
  using TileOf = typename Tiles::template TileOf<which>;
  template <int which>
  using Part = typename Tiles::template Part<which>;
  using Operand = typename OperandOf<Format>::Type;
  using Kept = typename StateOf<Format>::Type;
  using Rows = OutputRows<Operand, 4>;
  using Scores = PairScores<Operand>;
  using Matrix = PairTile<Kept>;
  using Matrices = Fragment<Matrix, Kept>;
  static constexpr bool decays_run = has_decay<Gate>;

  Tiles& tiles;
  const GradientDecays& decays;
  GateSums& gate_sums;
  float scale;
  int warp, lane;
  float ends[2], starts[2];  // the lane's share of GateSums'

  // M and N to shared memory; P to the sums of gates.
  __device__ __forceinline__ void pairs() const {
    Scores m, n;
    m.clear(), n.clear();
#pragma unroll 1
    for (int step = 0; step < tiles.value_steps(); ++step) {
      tiles.need(Part<Tiles::cotangents>{step}, Part<Tiles::pulls>{step}, Part<Tiles::updates>{step});
      Scores::template add<TileOf<Tiles::cotangents>, TileOf<Tiles::pulls>, TileOf<Tiles::updates>>(
          m, tiles.template at<Tiles::cotangents>(), n, tiles.template at<Tiles::pulls>(),
          tiles.template at<Tiles::updates>(), tiles.value_groups(step), warp, lane);
    }
    m.times(scale);
    if constexpr (decays_run) {
      Scores weights;
      weights.set_weights(decays, warp, lane);
      m.times(weights), n.times(weights);
    }
    m.template keep_pairs<false>(lane), n.template keep_pairs<true>(lane);
    m.template store<Kept>(tiles.weights(), warp, lane), n.template store<Kept>(tiles.removals(), warp, lane);
    if constexpr (decays_run) add_to_gates(m, n);
    __syncthreads();
  }
  // dq and dk of the warp's tokens.
  __device__ __forceinline__ void keys(const GradientRows<Format>& dq, const GradientRows<Format>& dk) {
#pragma unroll 1
    for (int key = 0; key < tiles.key_steps(); ++key) {
      Rows query, written, read;
      across(query, written, read, key);
      tiles.need(Part<Tiles::queries>{key}, Part<Tiles::keys>{key});
      if constexpr (decays_run) {
        weigh(query, decays.from_start, scale), weigh(read, decays.from_start, 1.0f);
        weigh(written, decays.to_end, 1.0f);
        add_dots(query, written, read);
      } else {
        query.times(scale);
      }
      const int groups = tiles.key_groups(key);
      add_earlier(query, read, groups);
      dq.store(query, key, lane);
      add_later(written, read, groups);
      subtract(written, read);
      dk.store(written, key, lane);
    }
    if constexpr (decays_run) store_dots(gate_sums.ends, ends), store_dots(gate_sums.starts, starts);
  }
  // <S, D> of the whole matrices, whose padding is zero: from their tiles, or from memory where those do not
  // hold all of both. The same sums either way.
  __device__ __forceinline__ bool tiles_hold_states() const {
    return Tiles::layout.all && tiles.in.shape.key_groups() == 4 && tiles.value_steps() == 1;
  }
  template <bool of_tiles>
  __device__ __forceinline__ void state_product() const {
    const int quads = 64 * tiles.in.shape.key_groups() * tiles.in.shape.value_groups();
    float sum = 0.0f;
#pragma unroll 8
    for (int i = int(threadIdx.x); i < quads; i += 128) {
      float s[4], d[4];
      if constexpr (of_tiles) {
        const int at = TileOf<Tiles::states>::offset(i >> 4, 4 * (i & 15));
        reinterpret_cast<const Quad<Kept>*>(tiles.template at<Tiles::states>() + at)->decode(s);
        reinterpret_cast<const Quad<Kept>*>(tiles.template at<Tiles::adjoints>() + at)->decode(d);
      } else {
        reinterpret_cast<const Quad<Kept>*>(tiles.in.S)[i].decode(s);
        reinterpret_cast<const Quad<Kept>*>(tiles.in.D)[i].decode(d);
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) sum = fused(s[n], d[n], sum);
    }
    sum = GateSums::over_lanes(sum);
    if (lane == 0) gate_sums.state[warp] = sum;
  }

 private:
  __device__ __forceinline__ void add_to_gates(Scores& m, const Scores& n) const {
    Scores of_queries, of_keys;
    of_queries.clear(), of_keys.clear();
#pragma unroll 1
    for (int step = 0; step < tiles.key_steps(); ++step) {
      tiles.need(Part<Tiles::queries>{step}, Part<Tiles::keys>{step});
      const char* keys = tiles.template at<Tiles::keys>();
      Scores::template add<TileOf<Tiles::queries>, TileOf<Tiles::keys>, TileOf<Tiles::keys>>(
          of_queries, tiles.template at<Tiles::queries>(), of_keys, keys, keys, tiles.key_groups(step), warp,
          lane);
    }
    m.times(of_queries), m.take_product(n, of_keys);
    m.template keep_pairs<true>(lane);
    gate_sums.add_pairs(m, warp, lane);
  }
  // What comes from other chunks, 64 key channels: S do, D u and S dr.
  __device__ __forceinline__ void across(Rows& query, Rows& written, Rows& read, int key) {
    query.clear(), written.clear(), read.clear();
#pragma unroll 1
    for (int value = 0; value < tiles.value_steps(); ++value) {
      const Part<Tiles::states> state{8 * key + value};
      const Part<Tiles::adjoints> adjoint{8 * key + value};
      const Part<Tiles::cotangents> cotangent{value};
      const Part<Tiles::updates> update{value};
      const Part<Tiles::pulls> pull{value};
      if constexpr (Tiles::layout.all)
        tiles.need(cotangent, update, pull, state, adjoint);
      else
        tiles.need(cotangent, pull, state);
      add_state<Tiles::cotangents, Tiles::states>(query, key, value);
      add_state<Tiles::pulls, Tiles::states>(read, key, value);
      if constexpr (!Tiles::layout.all) tiles.need(update, adjoint);
      add_state<Tiles::updates, Tiles::adjoints>(written, key, value);
    }
  }
  // Each row times its token's factor and the same for all.
  __device__ __forceinline__ void weigh(Rows& x, const float* factors, float factor) const {
    const float* own = factors + 16 * warp + (lane >> 2);
    const float w[2] = {own[0] * factor, own[8] * factor};
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      float& e = x.out[i >> 3][(i >> 2) & 1].r[i & 3];
      e = e * w[(i >> 1) & 1];
    }
  }
  static __device__ __forceinline__ void subtract(Rows& x, const Rows& y) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      float& e = x.out[i >> 3][(i >> 2) & 1].r[i & 3];
      e = e - y.out[i >> 3][(i >> 2) & 1].r[i & 3];
    }
  }
  // Each row's product with its query, or its key.
  __device__ __forceinline__ void add_dots(const Rows& query, const Rows& written, const Rows& read) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float q[2][4], k[2][4];
      own_rows<Tiles::queries>(q, 16 * i), own_rows<Tiles::keys>(k, 16 * i);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int c = e >> 2, h = (e >> 1) & 1, place = c + 2 * (e & 1), r = e & 3;
        ends[h] = fused(query.out[i][c].r[r], q[h][place], ends[h]);
        ends[h] = fused(-read.out[i][c].r[r], k[h][place], ends[h]);
        starts[h] = fused(written.out[i][c].r[r], k[h][place], starts[h]);
      }
    }
  }
  // The warp's rows of q or k, 16 channels, as an accumulator has them: place c + 2 b.
  template <int which>
  __device__ __forceinline__ void own_rows(float (&x)[2][4], int column) const {
    using Own = Fragment<TileOf<which>, Format>;
    if constexpr (sizeof(typename Format::Bits) == 2) {
      u32 r[4];
      Own::packed_rows(r, tiles.template at<which>(), 16 * warp, column, lane);
#pragma unroll
      for (int m = 0; m < 4; ++m)
        x[m & 1][m >> 1] = Pair<Format>{r[m]}.low(), x[m & 1][(m >> 1) + 2] = Pair<Format>{r[m]}.high();
    } else {
      Own::rows(x, tiles.template at<which>(), 16 * warp, column, lane);
    }
  }
  template <int of_rows, int of_states>
  __device__ __forceinline__ void add_state(Rows& out, int key, int value) const {
    out.template add_product<TileOf<of_rows>, TileOf<of_states>, true>(
        tiles.template at<of_rows>(), tiles.template at<of_states>(), tiles.value_groups(value),
        tiles.key_groups(key), warp, lane);
  }
  // Sums over the tokens up to the warp's: M k and N k.
  __device__ __forceinline__ void add_earlier(Rows& query, Rows& read, int groups) const {
#pragma unroll 1
    for (int tile = 0; tile <= warp; ++tile) {
      const int place = Matrix::place(warp, tile);
      const Operand m = Matrices::template row_operand<Operand>(tiles.weights() + place, 0, 0, lane),
                    n = Matrices::template row_operand<Operand>(tiles.removals() + place, 0, 0, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i >= groups) break;
        Operand k;
        load_columns<TileOf<Tiles::keys>>(k, tiles.template at<Tiles::keys>(), 16 * i,
                                          NaturalTokens{16 * tile}, lane);
#pragma unroll
        for (int c = 0; c < 2; ++c) multiply(query.out[i][c], m, k, c), multiply(read.out[i][c], n, k, c);
      }
    }
  }
  // Sums over the tokens from the warp's on: M^T q and N^T k.
  __device__ __forceinline__ void add_later(Rows& written, Rows& read, int groups) const {
#pragma unroll 1
    for (int tile = warp; tile < 4; ++tile) {
      const int place = Matrix::place(tile, warp);
      const Operand m = Matrices::template column_operand<Operand>(tiles.weights() + place, 0, 0, lane),
                    n = Matrices::template column_operand<Operand>(tiles.removals() + place, 0, 0, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i >= groups) break;
        Operand q, k;
        const NaturalTokens tokens{16 * tile};
        load_columns<TileOf<Tiles::queries>>(q, tiles.template at<Tiles::queries>(), 16 * i, tokens, lane);
        load_columns<TileOf<Tiles::keys>>(k, tiles.template at<Tiles::keys>(), 16 * i, tokens, lane);
#pragma unroll
        for (int c = 0; c < 2; ++c) multiply(written.out[i][c], m, q, c), multiply(read.out[i][c], n, k, c);
      }
    }
  }
  __device__ __forceinline__ void store_dots(float* to, const float (&sum)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = GateSums::over_quad(sum[half]);
      if ((lane & 3) == 0) to[16 * warp + 8 * half + (lane >> 2)] = total;
    }
  }
};

// dg: [token, heads] where gates are of tokens.
template <class Format, class Gate>
__device__ __forceinline__ void token_gradients(const GradientInputs<Format>& in,
                                                const typename Gate::Bits* gates, GradientRows<Format> dq,
                                                GradientRows<Format> dk, typename Gate::Bits* dg, i64 first,
                                                int head, float scale, char* base) {
  using Gradients = TokenGradients<Format, Gate>;
  using Tiles = typename Gradients::Tiles;
  __shared__ GradientDecays decays;
  __shared__ GateSums gate_sums;
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5, heads = in.shape.heads;
  Tiles tiles(in, base);
  Gradients gradients{tiles, decays, gate_sums, scale, warp, lane, {0.0f, 0.0f}, {0.0f, 0.0f}};

  float y[2] = {0.0f, 0.0f};  // ahead of everything: their sums take longest
  if (has_decay<Gate> && warp == 0) load_gates<Gate>(y, gates, first, in.rows, head, heads, lane);
  tiles.begin();
  if (has_decay<Gate> && warp == 0) decays.fill(y, lane);
  if constexpr (has_decay<Gate>)
    if (!gradients.tiles_hold_states()) gradients.template state_product<false>();
  wait_copies<0>();
  __syncthreads();
  if constexpr (has_decay<Gate>)
    if (gradients.tiles_hold_states()) gradients.template state_product<true>();
  gradients.pairs();
  gradients.keys(dq, dk);
  if constexpr (has_decay<Gate>) {
    const float gradient = gate_sums.gradient(decays.whole_chunk(), warp, lane);
    const int t = int(threadIdx.x);
    if (t < in.rows) dg[(first + t) * heads + head] = Gate::encode(gradient);
  }
}

}  // namespace rule
