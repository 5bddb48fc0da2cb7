// The parallel form: the whole T x T matrix of weighed scores, 64 x 64 at a time, without any state between.
// One kernel serves the output and the gradients of q, k and v; it makes 64 rows (tokens) x 64 channels of
//   out_r = sum_c w (x_r . y_c) scale z_c  +  w_0 S^T x_r,
// over the tokens c up to r, or from r on (`later`), with w = e^{sum of gates between}:
//   o   x = q, y = k, z = v, S = S_0 scale         dq  x = do, y = v, z = k, S = S_0^T scale
//   dv  x = k, y = q, z = do, S = dS_T, later      dk  x = v, y = do, z = q, S = dS_T^T, later
// Weights between different blocks of 64 tokens: the row's gates up to its block's edge, those of the blocks
// between, summed from the diagonal outwards, and the column's; one exponential of that sum, all terms <= 0.
#pragma once
#include "chunk_layout.h"
#include "gate_terms.cuh"
#include "learned_gates.cuh"

// Sums for the gates' gradients (parallel_gates.cuh), over a block's rows r and 64 channels; p = q, `later`
// k.
struct ParallelTerms {
  float* rows;    // [token][H][slices]: p_r . out_r without the block's own columns
  float* own;     // [token][H]: of the block's own pairs; `later` only
  float* blocks;  // [block][H][slices][stride]: sum over r of p_r . out_r from S alone, in [0]; not `later`:
                  // from block J in [1 + J]
  int stride;
};

template <class Format>
struct ParallelShared {
  using T = Tile<Format, 64>;
  using StateTile = Tile<Fp32, 64>;
  static constexpr assay::scalar::ParallelLayout layout{sizes_of_format<Format>};
  static constexpr int x = 0, y = layout.y_offset, z = layout.z_offset, partner = layout.partner_offset,
                       state = layout.state_offset;
  static_assert(state + StateTile::bytes <= partner + (sizeof(typename Format::Bits) == 2 ? 0 : T::bytes),
                "the partner's tile stays");
};

// Log decays of a block of tokens: to or from its edge.
struct EdgeSums {
  float logs[64];

  // By one whole warp, from the gates of tokens lane and lane + 32: `outside` plus the sum up to the token,
  // or of those after it. Returns the sum over the block.
  __device__ __forceinline__ float fill(const float (&y)[2], bool after, float outside, int lane) {
    TokenSums sums(y);
#pragma unroll
    for (int l = 0; l < 5; ++l) sums.double_block(l, lane);
    sums.join_halves();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      logs[lane + 32 * half] = outside + (after ? sums.after[half] : sums.up[half]);
    return sums.total[0];
  }
};

// One sequence's tokens in blocks of 64.
struct SequenceBlock {
  i64 first, tokens;  // of the sequence
  int sequence, index, count;

  // blocks [.][2]: sequence, index in it; sequences [N][3]: first token, tokens, (unused).
  __device__ SequenceBlock(const i64* blocks, const i64* sequences, int block) {
    sequence = int(blocks[2 * i64(block)]), index = int(blocks[2 * i64(block) + 1]);
    first = sequences[3 * i64(sequence)], tokens = sequences[3 * i64(sequence) + 1];
    count = int((tokens + 63) / 64);
  }
  __device__ i64 begin(int at) const { return first + 64 * i64(at); }
  __device__ int rows(int at) const { return int(min(i64(64), tokens - 64 * i64(at))); }
};

// What a block of threads shares beside its tiles.
struct ParallelSums {
  PairDecays decays;              // of the rows' own block
  EdgeSums own_edge, other_edge;  // from the rows to their block's edge; from there on to the columns
  float row_factors[64];          // w_0
  GateTerms gate_terms;
};

template <class Format, class Gate, bool later, bool state_by_columns>
struct ParallelRows {
  using Shared = ParallelShared<Format>;
  using T = typename Shared::T;
  using StateTile = typename Shared::StateTile;
  using Operand = typename OperandOf<Format>::Type;
  using Bits = typename Format::Bits;
  using Out = OutputRows<Operand, 4>;
  using OwnPartners = typename PartnersOf<later>::Type;
  using OwnScores = ScoreRows<Operand, OwnPartners>;

  const Bits *x, *y, *z, *partner;  // the tensors' first token, the head, channel 0
  const float* state;               // the sequence's and head's, or null
  const typename Gate::Bits* gates;
  ParallelTerms terms;
  SequenceBlock at;
  Shape shape;
  int head, terms_channels, out_channels, slice;  // channels of x and y; of z, 64 of these from 64 slice on
  i64 block_slot;                                 // [block][H][slices]
  float scale;
  char* shared;
  ParallelSums& sums;
  int warp, lane;
  float between = 0.0f;  // warp 0: the gates of the blocks passed so far

  static constexpr __device__ bool wants_gates() { return is_learned<Gate> && !state_by_columns; }
  __device__ int live_rows() const { return at.rows(at.index) - 16 * warp; }
  __device__ i64 first_row() const { return (at.begin(at.index) + 16 * warp) * shape.heads + head; }
  __device__ int term_steps() const { return (terms_channels + 63) / 64; }
  __device__ int out_steps() const { return (out_channels + 63) / 64; }
  __device__ int term_groups(int step) const { return min(4, (terms_channels + 15) / 16 - 4 * step); }
  __device__ int out_groups(int step) const { return min(4, (out_channels + 15) / 16 - 4 * step); }

  __device__ void load(int place, const Bits* tensor, int channels, int step, int block) const {
    const i64 token = at.begin(block) * shape.heads;
    load_tile<T, 128>(shared + place, tensor + token * channels + 64 * step, i64(shape.heads) * channels,
                      at.rows(block), channels - 64 * step, shape.vector);
  }
  static __device__ void arrive() {
    commit_copies();
    wait_copies<0>();
    __syncthreads();
  }
  __device__ void load_block_gates(float (&g)[2], int block) const {
    load_gates<Gate>(g, gates, at.begin(block), at.rows(block), head, shape.heads, lane);
  }

  __device__ __forceinline__ void begin() const {
    if (has_decay<Gate> && warp == 0) {
      float g[2];
      load_block_gates(g, at.index);
      sums.decays.fill(g, lane);
      sums.own_edge.fill(g, later, 0.0f, lane);
    }
    if (wants_gates()) load(Shared::partner, partner, out_channels, slice, at.index);
  }

  // Scores of the rows with the tokens of a block; z of those tokens is there afterwards.
  template <class Partners>
  __device__ __forceinline__ void score(ScoreRows<Operand, Partners>& scores, int block) const {
    scores.clear();
    for (int step = 0; step < term_steps(); ++step) {
      __syncthreads();  // everyone is done with the tiles
      load(Shared::x, x, terms_channels, step, at.index);
      load(Shared::y, y, terms_channels, step, block);
      if (step == 0) load(Shared::z, z, out_channels, slice, block);
      arrive();
      scores.template add<T>(shared + Shared::x, shared + Shared::y, term_groups(step), warp, lane);
    }
  }
  template <class Partners>
  __device__ __forceinline__ void add_scores(Out& out, const ScoreRows<Operand, Partners>& scores) const {
    const HeldScores<Operand, Partners> held{scores};
    out.template add_scores<T, Partners>(held, shared + Shared::z, out_groups(slice), warp, lane);
  }

  // The pairs with another block, the next one outwards.
  __device__ __forceinline__ void add_block(Out& out, int other) {
    __syncthreads();  // everyone is done with the last block's sums
    if (has_decay<Gate> && warp == 0) {
      float g[2];
      load_block_gates(g, other);
      between = between + sums.other_edge.fill(g, !later, between, lane);
    }
    ScoreRows<Operand, AllPartners> scores;
    score(scores, other);
    if constexpr (has_decay<Gate>) scores.weigh_across(sums.own_edge.logs, sums.other_edge.logs, warp, lane);
    scores.times(scale);
    Out sum;
    sum.clear();
    add_scores(sum, scores);
    out.add(sum);
    if constexpr (has_decay<Gate> && !later)
      if (wants_gates()) store_block_term(sum, 1 + other);
  }

  // w_0 S^T x, after all blocks.
  __device__ __forceinline__ void add_state(Out& out) const {
    if (state == nullptr) {
      if (wants_gates() && threadIdx.x == 0) terms.blocks[block_slot * terms.stride] = 0.0f;
      return;
    }
    Out sum;
    sum.clear();
    state_product(sum);
    if constexpr (!later) sum.times(scale);
    if constexpr (has_decay<Gate>) {
      if (warp == 0)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          sums.row_factors[lane + 32 * half] = power_of_two(sums.own_edge.logs[lane + 32 * half] + between);
      __syncthreads();
      sum.times(sums.row_factors, warp, lane);
    }
    out.add(sum);
    if constexpr (has_decay<Gate>)
      if (wants_gates()) store_block_term(sum, 0);
  }
  __device__ __forceinline__ void state_product(Out& sum) const {
    const int V = shape.value_channels;
    for (int step = 0; step < term_steps(); ++step) {
      __syncthreads();
      load(Shared::x, x, terms_channels, step, at.index);
      const int key_step = state_by_columns ? step : slice, value_step = state_by_columns ? slice : step;
      load_tile<StateTile, 128>(shared + Shared::state, state + i64(64 * key_step) * V + 64 * value_step, V,
                                shape.key_channels - 64 * key_step, V - 64 * value_step, shape.vector);
      arrive();
      sum.template add_product<T, StateTile, state_by_columns>(
          shared + Shared::x, shared + Shared::state, term_groups(step), out_groups(slice), warp, lane);
    }
  }

  // The pairs with the rows' own block; then the rows are complete.
  __device__ __forceinline__ void finish(Out& out, Bits* to) const {
    OwnScores scores;
    score(scores, at.index);
    scores.template weigh<Gate>(sums.decays, warp, lane);
    scores.times(scale);
    if constexpr (has_decay<Gate>)
      if (wants_gates()) store_row_terms(out);
    add_scores(out, scores);
    out.template store<Format>(to + first_row() * out_channels, 64 * slice, out_channels, live_rows(), 1.0f,
                               shape, lane);
    if constexpr (has_decay<Gate> && later)
      if (wants_gates() && slice == 0) store_own_terms(scores);
  }

  // The rows' products with the partner's, summed over the block's rows.
  __device__ __forceinline__ void store_block_term(const Out& sum, int place) const {
    float dot[2] = {0.0f, 0.0f};
    sum.template dot<T>(shared + Shared::partner, warp, lane, dot);
    const float total = GateTerms::over_rows(GateTerms::over_quad(dot[0] + dot[1]));
    if (lane == 0) sums.gate_terms.state[warp] = total;
    __syncthreads();
    if (threadIdx.x == 0) terms.blocks[block_slot * terms.stride + place] = sums.gate_terms.of_state();
  }
  __device__ __forceinline__ void store_row_terms(const Out& out) const {
    float dot[2] = {0.0f, 0.0f};
    out.template dot<T>(shared + Shared::partner, warp, lane, dot);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = GateTerms::over_quad(dot[half]);
      const int row = (lane >> 2) + 8 * half;
      if ((lane & 3) == 0 && row < live_rows())
        terms.rows[(first_row() + i64(row) * shape.heads) * out_steps() + slice] = total;
    }
  }
  // The pairs inside the block: their scores times those of the other two tensors, over all channels.
  __device__ __forceinline__ void store_own_terms(const OwnScores& scores) const {
    OwnScores others;
    others.clear();
    for (int step = 0; step < out_steps(); ++step) {
      __syncthreads();
      load(Shared::partner, partner, out_channels, step, at.index);
      load(Shared::z, z, out_channels, step, at.index);
      arrive();
      others.template add<T>(shared + Shared::partner, shared + Shared::z, out_groups(step), warp, lane);
    }
    others.times(scores);
    sums.gate_terms.sum_pairs(others.s, warp, lane);
    __syncthreads();
    const int t = int(threadIdx.x);
    if (t < at.rows(at.index))
      terms.own[(at.begin(at.index) + t) * shape.heads + head] = sums.gate_terms.of_pairs(t);
  }
};

// `partner`: p of ParallelTerms for dq and dk of learned gates, else null. blocks [.][2]: sequence, number
// in it.
template <class Format, class Gate, bool later, bool state_by_columns>
__device__ __forceinline__ void parallel_rows(const typename Format::Bits* x, const typename Format::Bits* y,
                                              const typename Format::Bits* z,
                                              const typename Format::Bits* partner,
                                              const typename Gate::Bits* gates, const float* state,
                                              typename Format::Bits* to, ParallelTerms terms,
                                              const i64* blocks, const i64* sequences, float scale,
                                              Shape shape) {
  using Rows = ParallelRows<Format, Gate, later, state_by_columns>;
  extern __shared__ __align__(16) char base[];
  __shared__ ParallelSums sums;

  const int K = shape.key_channels, V = shape.value_channels;
  const int terms_channels = state_by_columns ? K : V, out_channels = state_by_columns ? V : K;
  const int slices = (out_channels + 63) / 64, slice = int(blockIdx.x) % slices;
  const int head = int(blockIdx.x) / slices % shape.heads, block = int(blockIdx.x) / slices / shape.heads;
  const SequenceBlock at(blocks, sequences, block);
  const i64 term_head = i64(head) * terms_channels, out_head = i64(head) * out_channels;
  Rows rows{x + term_head,
            y + term_head,
            z + out_head,
            Rows::wants_gates() ? partner + out_head : nullptr,
            state == nullptr ? nullptr : state + (i64(at.sequence) * shape.heads + head) * K * V,
            gates,
            terms,
            at,
            shape,
            head,
            terms_channels,
            out_channels,
            slice,
            (i64(block) * shape.heads + head) * slices + slice,
            scale,
            base,
            sums,
            int(threadIdx.x) >> 5,
            int(threadIdx.x) & 31};
  rows.begin();
  typename Rows::Out out;
  out.clear();
#pragma unroll 1
  for (int other = later ? at.index + 1 : at.index - 1; later ? other < at.count : other >= 0;
       other += later ? 1 : -1)
    rows.add_block(out, other);
  rows.add_state(out);
  rows.finish(out, to);
}
