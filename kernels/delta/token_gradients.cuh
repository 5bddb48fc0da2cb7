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
// (scalar/gate_terms.cuh). A block owns one chunk and head, each of its 4 warps 16 tokens.
#pragma once
#include "../scalar/gate_terms.cuh"
#include "gradient_inputs.cuh"

namespace rule {

// The format of what the scans kept, or of what is given.
template <class Format, bool kept>
struct GradientFormat {
  using Type = Format;
};
template <class Format>
struct GradientFormat<Format, true> {
  using Type = typename StateOf<Format>::Type;
};

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

// Tiles of 64 tokens x 64 channels, and 64 x 64 of S and D, in shared memory: whichever part is needed,
// loaded where it is not there already. Up to 64 channels everything is loaded once where there is room.
template <class Format>
struct GradientTiles {
  static constexpr assay::delta::TokenGradientLayout layout{sizes_of_format<Format>};
  enum Which { queries, keys, cotangents, updates, pulls, states, adjoints };
  template <int which>
  using TileOf = Tile<typename GradientFormat<Format, which >= updates>::Type, 64>;

  const GradientInputs<Format> in;
  char* const shared;
  int held[7];  // by place: the tile that is there and which of its parts

  // A tile and which 64 of its channels; of states 8 times those of the keys plus those of the values.
  template <int which_>
  struct Part {
    static constexpr int which = which_;
    int part;
  };

  __device__ __forceinline__ GradientTiles(const GradientInputs<Format>& in, char* shared)
      : in(in), shared(shared) {
#pragma unroll
    for (int& x : held) x = -1;
  }
  template <int which>
  static constexpr int place = layout.all            ? which
                               : which == cotangents ? queries
                               : which == adjoints   ? states
                                                     : which;
  template <int which>
  __device__ __forceinline__ char* at() const {
    constexpr int offsets[] = {0,
                               layout.keys_offset,
                               layout.cotangents_offset,
                               layout.updates_offset,
                               layout.pulls_offset,
                               layout.states_offset,
                               layout.adjoints_offset};
    return shared + offsets[which];
  }
  __device__ __forceinline__ int key_steps() const {
    return (in.shape.key_channels + 63) / 64;
  }
  __device__ __forceinline__ int value_steps() const {
    return (in.shape.value_channels + 63) / 64;
  }
  __device__ __forceinline__ int key_groups(int step) const {
    return min(4, in.shape.key_groups() - 4 * step);
  }
  __device__ __forceinline__ int value_groups(int step) const {
    return min(4, in.shape.value_groups() - 4 * step);
  }

  // Starts loading what there is room for of everything's first part.
  __device__ __forceinline__ void begin() {
    load(Part<cotangents>{0}, Part<updates>{0}, Part<keys>{0}, Part<pulls>{0}, Part<adjoints>{0});
    if constexpr (layout.all) load(Part<queries>{0}, Part<states>{0});
  }
  // All threads: makes these parts be there.
  template <class... Parts>
  __device__ __forceinline__ void need(Parts... parts) {
    if ((holds(parts) && ...)) return;
    __syncthreads();  // everyone is done with what is replaced
    load(parts...);
    wait_copies<0>();
    __syncthreads();
  }
  // Starts loading those that are not there.
  template <class... Parts>
  __device__ __forceinline__ void load(Parts... parts) {
    (load_one(parts), ...);
    commit_copies();
  }

 private:
  template <class P>
  __device__ __forceinline__ bool holds(P x) const {
    return held[place<P::which>] == 64 * P::which + x.part;
  }
  template <class P>
  __device__ __forceinline__ void load_one(P x) {
    if (holds(x)) return;
    constexpr int which = P::which;
    held[place<which>] = 64 * which + x.part;
    if constexpr (which <= keys) {
      load_tile<TileOf<which>, 128>(at<which>(), (which == keys ? in.k : in.q) + 64 * x.part, in.key_stride,
                                    in.rows, in.shape.key_channels - 64 * x.part, in.shape.vector);
    } else if constexpr (which == cotangents) {
      load_tile<TileOf<which>, 128>(at<which>(), in.d_o + 64 * x.part, in.value_stride, in.rows,
                                    in.shape.value_channels - 64 * x.part, in.shape.vector);
    } else if constexpr (which <= pulls) {
      load_tile<TileOf<which>, 128>(at<which>(), (which == updates ? in.updates : in.pulls) + 64 * x.part,
                                    in.value_stride, in.rows, in.shape.value_channels - 64 * x.part,
                                    in.shape.vector);
    } else {
      const int padded_keys = 16 * in.shape.key_groups(), value = x.part % 8 * 64, key = x.part / 8 * 64;
      load_tile<TileOf<which>, 128>(
          at<which>(), (which == states ? in.S : in.D) + i64(value) * padded_keys + key, padded_keys,
          16 * in.shape.value_groups() - value, padded_keys - key, true);
    }
  }
};

template <class Format, class Gate>
struct TokenGradients {
  using Tiles = GradientTiles<Format>;
  template <int which>
  using TileOf = typename Tiles::template TileOf<which>;
  using Operand = typename OperandOf<Format>::Type;
  using Rows = OutputRows<Operand, 4>;
  template <class Partners>
  using Scores = ScoreRows<Operand, Partners>;
  template <class Partners>
  using Held = HeldScores<Operand, Partners>;
  template <int which>
  using Part = typename Tiles::template Part<which>;
  static constexpr bool decays_run = has_decay<Gate>;

  Tiles& tiles;
  const GradientDecays& decays;
  GateTerms& gate_terms;
  float scale;
  int warp, lane;

  // The warp's rows of scores between channels of `of_rows` and `of_columns`, not weighed.
  template <int of_rows, int of_columns, class Partners>
  __device__ __forceinline__ void score(Scores<Partners>& scores) const {
    constexpr bool of_keys = of_rows <= Tiles::keys;
    scores.clear();
    for (int step = 0; step < (of_keys ? tiles.key_steps() : tiles.value_steps()); ++step) {
      tiles.need(Part<of_rows>{step}, Part<of_columns>{step});
      scores.template add<TileOf<of_rows>, TileOf<of_columns>>(
          tiles.template at<of_rows>(), tiles.template at<of_columns>(),
          of_keys ? tiles.key_groups(step) : tiles.value_groups(step), warp, lane);
    }
  }
  // M, or -N without the diagonal.
  template <bool removal, class Partners>
  __device__ __forceinline__ void weigh(Scores<Partners>& scores) const {
    scores.template weigh<Gate>(decays, warp, lane);
    scores.times(removal ? -1.0f : scale);
    if constexpr (removal)
#pragma unroll
      for (int m = 0; m < 4; ++m)
        if (m == warp)
#pragma unroll
          for (int i = 0; i < 8; ++i)
            if ((lane >> 2) + 8 * ((i >> 1) & 1) == 8 * (i >> 2) + 2 * (lane & 3) + (i & 1))
              scores.s[2 * m + (i >> 2)].r[i & 3] = 0.0f;
  }

  // dk of the warp's tokens.
  __device__ __forceinline__ void keys(const Held<LaterPartners>& m, const Held<LaterPartners>& n_later,
                                       const Held<EarlierPartners>& n_earlier,
                                       const GradientRows<Format>& dk) const {
    float written[2] = {0.0f, 0.0f}, read[2] = {0.0f, 0.0f};
#pragma unroll 1
    for (int key = 0; key < tiles.key_steps(); ++key) {
      Rows out, taken;
      across<Tiles::updates, Tiles::adjoints>(out, key);
      if constexpr (decays_run) out.times(decays.to_end, warp, lane), dot<Tiles::keys>(out, key, written);
      across<Tiles::pulls, Tiles::states>(taken, key);
      taken.times(-1.0f);
      if constexpr (decays_run)
        taken.times(decays.from_start, warp, lane), dot<Tiles::keys>(taken, key, read);
      out.add(taken);
      tiles.need(Part<Tiles::queries>{key}, Part<Tiles::keys>{key});
      const int groups = tiles.key_groups(key);
      add_scores<Tiles::queries>(out, m, groups);
      add_scores<Tiles::keys>(out, n_later, groups);
      add_scores<Tiles::keys>(out, n_earlier, groups);
      dk.store(out, key, lane);
    }
    if constexpr (decays_run)
      store_dots<false>(gate_terms.starts, written), store_dots<false>(gate_terms.ends, read);
  }
  // dq of the warp's tokens.
  __device__ __forceinline__ void queries(const Held<EarlierPartners>& m,
                                          const GradientRows<Format>& dq) const {
    float read[2] = {0.0f, 0.0f};
#pragma unroll 1
    for (int key = 0; key < tiles.key_steps(); ++key) {
      Rows out;
      across<Tiles::cotangents, Tiles::states>(out, key);
      out.times(scale);
      if constexpr (decays_run) out.times(decays.from_start, warp, lane), dot<Tiles::queries>(out, key, read);
      tiles.need(Part<Tiles::keys>{key});
      add_scores<Tiles::keys>(out, m, tiles.key_groups(key));
      dq.store(out, key, lane);
    }
    if constexpr (decays_run) store_dots<true>(gate_terms.ends, read);
  }
  // p += scores (.) the products of the tokens' `of_rows` and `of_columns`.
  template <int of_rows, int of_columns>
  __device__ __forceinline__ void add_pairs(Scores<LaterPartners>& p,
                                            const Scores<LaterPartners>& scores) const {
    Scores<LaterPartners> products;
    score<of_rows, of_columns>(products);
#pragma unroll
    for (int i = 0; i < 32; ++i)
      p.s[i >> 2].r[i & 3] =
          fused(products.s[i >> 2].r[i & 3], scores.s[i >> 2].r[i & 3], p.s[i >> 2].r[i & 3]);
  }
  // <S, D> of the whole matrices, whose padding is zero.
  __device__ __forceinline__ void state_product() const {
    using Kept = typename StateOf<Format>::Type;
    const int quads = 64 * tiles.in.shape.key_groups() * tiles.in.shape.value_groups();
    float sum = 0.0f;
#pragma unroll 8
    for (int i = int(threadIdx.x); i < quads; i += 128) {
      float s[4], d[4];
      reinterpret_cast<const Quad<Kept>*>(tiles.in.S)[i].decode(s);
      reinterpret_cast<const Quad<Kept>*>(tiles.in.D)[i].decode(d);
#pragma unroll
      for (int n = 0; n < 4; ++n) sum = fused(s[n], d[n], sum);
    }
    sum = GateTerms::over_rows(GateTerms::over_quad(sum));
    if (lane == 0) gate_terms.state[warp] = sum;
  }

 private:
  template <int which, class Partners>
  __device__ __forceinline__ void add_scores(Rows& out, const Held<Partners>& scores, int groups) const {
    out.template add_scores<TileOf<which>, Partners>(scores, tiles.template at<which>(), groups, warp, lane);
  }
  // The rows' 64 key channels of S or D times what the tokens have of value channels.
  template <int of_rows, int of_states>
  __device__ __forceinline__ void across(Rows& out, int key) const {
    out.clear();
#pragma unroll 1
    for (int value = 0; value < tiles.value_steps(); ++value) {
      tiles.need(Part<of_rows>{value}, Part<of_states>{8 * key + value});
      out.template add_product<TileOf<of_rows>, TileOf<of_states>, true>(
          tiles.template at<of_rows>(), tiles.template at<of_states>(), tiles.value_groups(value),
          tiles.key_groups(key), warp, lane);
    }
  }
  template <int which>
  __device__ __forceinline__ void dot(const Rows& out, int key, float (&sum)[2]) const {
    tiles.need(Part<which>{key});
    out.template dot<TileOf<which>>(tiles.template at<which>(), warp, lane, sum);
  }
  template <bool more>
  __device__ __forceinline__ void store_dots(float* to, const float (&sum)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = GateTerms::over_quad(sum[half]);
      float& x = to[16 * warp + 8 * half + (lane >> 2)];
      if ((lane & 3) == 0) x = more ? x + total : total;
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
  using Later = LaterPartners;
  using Earlier = EarlierPartners;
  __shared__ GradientDecays decays;
  __shared__ GateTerms gate_terms;
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5, heads = in.shape.heads;
  Tiles tiles(in, base);
  const Gradients gradients{tiles, decays, gate_terms, scale, warp, lane};

  float y[2] = {0.0f, 0.0f};  // ahead of everything: their sums take longest
  if (has_decay<Gate> && warp == 0) load_gates<Gate>(y, gates, first, in.rows, head, heads, lane);
  tiles.begin();
  if (has_decay<Gate> && warp == 0) decays.fill(y, lane);
  if constexpr (has_decay<Gate>) gradients.state_product();
  wait_copies<0>();
  __syncthreads();
  {
    typename Gradients::template Scores<Later> m, n;
    gradients.template score<Tiles::updates, Tiles::cotangents>(m);
    gradients.template weigh<false>(m);
    gradients.template score<Tiles::updates, Tiles::pulls>(n);
    gradients.template weigh<true>(n);
    if constexpr (has_decay<Gate>) {
      typename Gradients::template Scores<Later> pairs;
      pairs.clear();
      gradients.template add_pairs<Tiles::keys, Tiles::queries>(pairs, m);
      gradients.template add_pairs<Tiles::keys, Tiles::keys>(pairs, n);
      gate_terms.sum_pairs(pairs.s, warp, lane);
    }
    const typename Gradients::template Held<Later> m_held{m}, n_held{n};
    typename Gradients::template Scores<Earlier> earlier;
    gradients.template score<Tiles::pulls, Tiles::updates>(earlier);
    gradients.template weigh<true>(earlier);
    gradients.keys(m_held, n_held, typename Gradients::template Held<Earlier>{earlier}, dk);
  }
  {
    typename Gradients::template Scores<Earlier> m;
    gradients.template score<Tiles::cotangents, Tiles::updates>(m);
    gradients.template weigh<false>(m);
    gradients.queries(typename Gradients::template Held<Earlier>{m}, dq);
  }
  if constexpr (has_decay<Gate>) {
    __syncthreads();
    const float gradient = gate_terms.gradient(decays.whole_chunk());
    const int t = int(threadIdx.x) >> 1;
    if ((threadIdx.x & 1) == 0 && t < in.rows) dg[(first + t) * heads + head] = Gate::encode(gradient);
  }
}

}  // namespace rule
