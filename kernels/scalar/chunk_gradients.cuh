// Second kernel of the chunked form's gradients. With A_ij = scale (q_i . k_j) e^{G_i - G_j} and M_ij = scale
// (do_i . v_j) e^{G_i - G_j} for j <= i, S the state at the chunk's start and D its gradient at its end,
//   dv_j = e^{L - G_j} D^T k_j    + sum_{i>=j} A_ij do_i
//   dk_j = e^{L - G_j} D v_j      + sum_{i>=j} M_ij q_i
//   dq_i = e^{G_i} scale S do_i   + sum_{j<=i} M_ij k_j
// and dg as in gate_terms.cuh. A block owns one chunk of 64 tokens and one head; each of its 4 warps owns 16
// tokens, whose gradients it makes: those of v and k from transposed scores, then those of q.
#pragma once
#include "gate_terms.cuh"
#include "learned_gates.cuh"
#include "state_scan.cuh"

// Tiles of 64 tokens x 64 channels of q, k, v and do, and 64 x 64 of S and D, in shared memory: whichever
// part is needed, loaded where it is not there already. Up to 64 channels everything is loaded once.
template <class Format>
struct GradientTiles {
  using Bits = typename Format::Bits;
  using Plain = typename StateOf<Format>::Type;
  using Tile64 = Tile<Format, 64>;
  using StateTile = Tile<Plain, 64>;
  static constexpr assay::scalar::GradientLayout layout{sizes_of_format<Format>};
  static constexpr int state_places = layout.both ? 2 : 1;
  static constexpr int absent = -1;

  const Bits *q, *k, *v, *d_o;        // chunk's first token, the head, channel 0
  const typename Plain::Bits *S, *D;  // the chunk's and head's
  Shape shape;
  int rows;
  char* shared;
  int held_q, held_k, held_v, held_do;  // which 64 channels
  int held_state[2];                    // which matrix and part of it

  __device__ const char* queries() const { return shared; }
  __device__ const char* keys() const { return at<layout.keys_offset>(); }
  __device__ const char* values() const { return at<layout.values_offset>(); }
  __device__ const char* cotangents() const { return at<layout.cotangents_offset>(); }
  __device__ char* state_place(bool adjoint) const {
    return adjoint ? at<layout.adjoints_offset>() : at<layout.states_offset>();
  }
  __device__ int key_steps() const { return (shape.key_channels + 63) / 64; }
  __device__ int value_steps() const { return (shape.value_channels + 63) / 64; }
  __device__ int key_groups(int step) const { return min(4, shape.key_groups() - 4 * step); }
  __device__ int value_groups(int step) const { return min(4, shape.value_groups() - 4 * step); }

  __device__ void load(const char* place, const Bits* from, int channels, int step) const {
    load_tile<Tile64, 128>(const_cast<char*>(place), from + 64 * step, i64(shape.heads) * channels, rows,
                           channels - 64 * step, shape.vector);
  }
  __device__ void load_state(bool adjoint, int key_step, int value_step) const {
    const int padded_keys = 16 * shape.key_groups(), padded_values = 16 * shape.value_groups();
    const typename Plain::Bits* from = (adjoint ? D : S) + i64(64 * value_step) * padded_keys + 64 * key_step;
    load_tile<StateTile, 128>(state_place(adjoint), from, padded_keys, padded_values - 64 * value_step,
                              padded_keys - 64 * key_step, true);
  }
  static __device__ int state_number(bool adjoint, int key_step, int value_step) {
    return (adjoint ? 64 : 0) + 8 * key_step + value_step;
  }

  // Starts loading all first parts: the inputs, then in a second group what there is place for of S and D.
  __device__ __forceinline__ void begin_inputs() {
    load(queries(), q, shape.key_channels, 0);
    load(keys(), k, shape.key_channels, 0);
    load(values(), v, shape.value_channels, 0);
    load(cotangents(), d_o, shape.value_channels, 0);
    commit_copies();
    held_q = held_k = held_v = held_do = 0;
  }
  __device__ __forceinline__ void begin() {
    begin_inputs();
    if (state_places == 2) load_state(false, 0, 0);
    load_state(true, 0, 0);
    commit_copies();
    held_state[0] = state_number(state_places == 1, 0, 0), held_state[1] = state_number(true, 0, 0);
  }
  // All threads: makes these parts be there, of q, k, v and do and of D (`adjoint`) or S; `absent`: not
  // needed.
  __device__ __forceinline__ void need(int query, int key, int value, int cotangent, bool adjoint = false,
                                       int state_key = absent, int state_value = absent) {
    const bool other_q = query != absent && query != held_q, other_k = key != absent && key != held_k,
               other_v = value != absent && value != held_v,
               other_do = cotangent != absent && cotangent != held_do;
    int& held = held_state[state_places == 2 && adjoint];
    const int wanted = state_number(adjoint, state_key, state_value);
    const bool other_state = state_key != absent && wanted != held;
    if (!(other_q || other_k || other_v || other_do || other_state)) return;
    __syncthreads();  // everyone is done with what is replaced
    if (other_q) load(queries(), q, shape.key_channels, held_q = query);
    if (other_k) load(keys(), k, shape.key_channels, held_k = key);
    if (other_v) load(values(), v, shape.value_channels, held_v = value);
    if (other_do) load(cotangents(), d_o, shape.value_channels, held_do = cotangent);
    if (other_state) load_state(adjoint, state_key, state_value), held = wanted;
    commit_copies();
    wait_copies<0>();
    __syncthreads();
  }

 private:
  template <int offset>
  __device__ char* at() const {
    return shared + offset;
  }
};

template <class Format, class Gate>
struct ChunkGradients {
  using Tiles = GradientTiles<Format>;
  using T = typename Tiles::Tile64;
  using StateTile = typename Tiles::StateTile;
  using Operand = typename OperandOf<Format>::Type;
  using Bits = typename Format::Bits;
  using Rows = OutputRows<Operand, 4>;

  Tiles& tiles;
  const GradientDecays& decays;
  GateTerms& gate_terms;
  bool wants_gates;
  float scale;
  int warp, lane, live_rows;

  // Scores of the warp's tokens, summed over the key channels, or over the value channels.
  __device__ __forceinline__ void key_scores(ScoreRows<Operand, LaterPartners>& scores) const {
    scores.clear();
    for (int step = 0; step < tiles.key_steps(); ++step) {
      tiles.need(step, step, Tiles::absent, Tiles::absent);
      scores.template add<T>(tiles.keys(), tiles.queries(), tiles.key_groups(step), warp, lane);
    }
  }
  template <class Partners>
  __device__ __forceinline__ void value_scores(ScoreRows<Operand, Partners>& scores) const {
    scores.clear();
    for (int step = 0; step < tiles.value_steps(); ++step) {
      tiles.need(Tiles::absent, Tiles::absent, step, step);
      if constexpr (Partners::later)
        scores.template add<T>(tiles.values(), tiles.cotangents(), tiles.value_groups(step), warp, lane);
      else
        scores.template add<T>(tiles.cotangents(), tiles.values(), tiles.value_groups(step), warp, lane);
    }
  }
  template <class Partners>
  __device__ __forceinline__ void weigh(ScoreRows<Operand, Partners>& scores) const {
    scores.template weigh<Gate>(decays, warp, lane);
    scores.times(scale);
  }

  // dv of the warp's tokens.
  template <class Scores>
  __device__ __forceinline__ void values(const Scores& scores, Bits* dv) const {
    Rows out;
#pragma unroll 1
    for (int value = 0; value < tiles.value_steps(); ++value) {
      const int groups = tiles.value_groups(value);
      out.clear();
#pragma unroll 1
      for (int key = 0; key < tiles.key_steps(); ++key) {
        tiles.need(Tiles::absent, key, Tiles::absent, Tiles::absent, true, key, value);
        out.template add_product<T, StateTile, false>(tiles.keys(), tiles.state_place(true),
                                                      tiles.key_groups(key), groups, warp, lane);
      }
      if constexpr (has_decay<Gate>) out.times(decays.to_end, warp, lane);
      tiles.need(Tiles::absent, Tiles::absent, Tiles::absent, value);
      out.template add_scores<T, LaterPartners>(scores, tiles.cotangents(), groups, warp, lane);
      out.template store<Format>(dv, 64 * value, tiles.shape.value_channels, live_rows, 1.0f, tiles.shape,
                                 lane);
    }
  }
  // dk of the warp's tokens, or dq (`of_queries`): across chunks from D and v, or S and do; inside from
  // scores and the other one. `dots`: products with k, or q, of what comes from other chunks.
  template <bool of_queries, class Scores>
  __device__ __forceinline__ void key_rows(const Scores& scores, Bits* to, float* dots) const {
    using Partners = typename PartnersOf<!of_queries>::Type;
    constexpr int absent = Tiles::absent;
    Rows out;
    float sum[2] = {0.0f, 0.0f};
#pragma unroll 1
    for (int key = 0; key < tiles.key_steps(); ++key) {
      const int groups = tiles.key_groups(key), own = is_learned<Gate> ? key : absent;
      out.clear();
#pragma unroll 1
      for (int value = 0; value < tiles.value_steps(); ++value) {
        tiles.need(absent, absent, of_queries ? absent : value, of_queries ? value : absent, !of_queries, key,
                   value);
        out.template add_product<T, StateTile, true>(of_queries ? tiles.cotangents() : tiles.values(),
                                                     tiles.state_place(!of_queries),
                                                     tiles.value_groups(value), groups, warp, lane);
      }
      if constexpr (of_queries) out.times(scale);
      if constexpr (has_decay<Gate>) out.times(of_queries ? decays.from_start : decays.to_end, warp, lane);
      tiles.need(of_queries ? own : key, of_queries ? key : own, absent, absent);
      if constexpr (has_decay<Gate>)
        if (wants_gates) out.template dot<T>(of_queries ? tiles.queries() : tiles.keys(), warp, lane, sum);
      out.template add_scores<T, Partners>(scores, of_queries ? tiles.keys() : tiles.queries(), groups, warp,
                                           lane);
      out.template store<Format>(to, 64 * key, tiles.shape.key_channels, live_rows, 1.0f, tiles.shape, lane);
    }
    if constexpr (has_decay<Gate>)
      if (wants_gates) store_dots(dots, sum);
  }

  __device__ __forceinline__ void store_dots(float* to, const float (&sum)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = GateTerms::over_quad(sum[half]);
      if ((lane & 3) == 0) to[16 * warp + 8 * half + (lane >> 2)] = total;
    }
  }
  // <S, D> of the whole matrices, whose padding is zero.
  __device__ __forceinline__ void state_product() const {
    const int quads = 64 * tiles.shape.key_groups() * tiles.shape.value_groups();
    float sum = 0.0f;
    for (int i = int(threadIdx.x); i < quads; i += 128) {
      float s[4], d[4];
      reinterpret_cast<const Quad<typename Tiles::Plain>*>(tiles.S)[i].decode(s);
      reinterpret_cast<const Quad<typename Tiles::Plain>*>(tiles.D)[i].decode(d);
#pragma unroll
      for (int n = 0; n < 4; ++n) sum = fused(s[n], d[n], sum);
    }
    sum = GateTerms::over_rows(GateTerms::over_quad(sum));
    if (lane == 0) gate_terms.state[warp] = sum;
  }
};

// gate_gradients: of learned gates. states, adjoints: as PlainStates.
template <class Format, class Gate>
__device__ __forceinline__ void chunk_gradients(
    const typename Format::Bits* q, const typename Format::Bits* k, const typename Format::Bits* v,
    const typename Gate::Bits* gates, const typename Format::Bits* d_o,
    const typename StateOf<Format>::Type::Bits* states, const typename StateOf<Format>::Type::Bits* adjoints,
    typename Format::Bits* dq, typename Format::Bits* dk, typename Format::Bits* dv,
    typename Gate::Bits* gate_gradients, const i64* chunks, float scale, Shape shape) {
  using Gradients = ChunkGradients<Format, Gate>;
  using Operand = typename Gradients::Operand;
  extern __shared__ __align__(16) char base[];
  __shared__ GradientDecays decays;
  __shared__ GateTerms gate_terms;

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int head = int(blockIdx.x) % shape.heads, chunk = int(blockIdx.x) / shape.heads;
  const i64 first = chunks[2 * i64(chunk)];
  const int rows = int(chunks[2 * i64(chunk) + 1]);
  const i64 token = first * shape.heads + head, warp_token = token + i64(16 * warp) * shape.heads;
  const i64 keys_at = token * shape.key_channels, values_at = token * shape.value_channels;
  const i64 state_at = (i64(chunk) * shape.heads + head) * 256 * shape.key_groups() * shape.value_groups();
  GradientTiles<Format> tiles{
      q + keys_at, k + keys_at, v + values_at, d_o + values_at, states + state_at, adjoints + state_at,
      shape,       rows,        base};
  constexpr bool wants_gates = is_learned<Gate>;
  const Gradients gradients{tiles, decays, gate_terms, wants_gates, scale, warp, lane, rows - 16 * warp};

  float y[2] = {0.0f, 0.0f};  // ahead of everything: their sums take longest
  if (has_decay<Gate> && warp == 0) load_gates<Gate>(y, gates, first, rows, head, shape.heads, lane);
  tiles.begin();
  if (has_decay<Gate> && warp == 0) decays.fill(y, lane);
  if constexpr (has_decay<Gate>)
    if (wants_gates) gradients.state_product();
  wait_copies<1>();
  __syncthreads();
  {
    ScoreRows<Operand, LaterPartners> a, m;
    gradients.key_scores(a);
    gradients.value_scores(m);
    gradients.weigh(a);
    if constexpr (has_decay<Gate>)
      if (wants_gates) {
        ScoreRows<Operand, LaterPartners> p;
#pragma unroll
        for (int i = 0; i < 32; ++i) p.s[i >> 2].r[i & 3] = a.s[i >> 2].r[i & 3] * m.s[i >> 2].r[i & 3];
        gate_terms.sum_pairs(p.s, warp, lane);
      }
    gradients.weigh(m);
    wait_copies<0>();
    __syncthreads();
    const HeldScores<Operand, LaterPartners> of_keys{a}, of_values{m};
    gradients.values(of_keys, dv + warp_token * shape.value_channels);
    gradients.template key_rows<false>(of_values, dk + warp_token * shape.key_channels, gate_terms.starts);
  }
  {
    ScoreRows<Operand, EarlierPartners> m;
    gradients.value_scores(m);
    gradients.weigh(m);
    const HeldScores<Operand, EarlierPartners> of_values{m};
    gradients.template key_rows<true>(of_values, dq + warp_token * shape.key_channels, gate_terms.ends);
  }
  if constexpr (has_decay<Gate>)
    if (wants_gates) {
      __syncthreads();
      const float dg = gate_terms.gradient(decays.whole_chunk());
      const int t = int(threadIdx.x) >> 1;
      if ((threadIdx.x & 1) == 0 && t < rows) gate_gradients[token + i64(t) * shape.heads] = Gate::encode(dg);
    }
}
