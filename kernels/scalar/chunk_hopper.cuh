// The chunked form on Hopper in one launch: a block owns one sequence and head and `columns` of the result's
// channels, and goes from chunk to chunk; states never leave the chip. A warp fills a ring of chunks by
// tensor map, two sum their gates, one warpgroup carries the state, and two make the results of every other
// chunk, from copies of the state that the first one leaves in a second ring. For rows r, keys k, values v:
//   states   S <- e^L S + dS, dS = (k e^{L - G})^T v, or k^T (v e^{L - G}) where it is v that forward decays
//   results  e^{G} (r S) + (r k^T, causal and decayed) v
// which is o of r = q, and dq of r = do with v for k and k for v. From the last chunk to the first, with
// e^{G} and e^{L - G} in each other's place and pairs of a row with later keys, it is dv (r = k, q for k, do
// for v) and dk (r = v, do for k, q for v). The same operations in the same order as state_scan.cuh,
// chunk_product.cuh and chunk_gradients.cuh, in products of wgmma, which sum as mma.sync does on this GPU, 16
// products in one step: the same bits.
#pragma once
#include "hopper_terms.cuh"
#include "learned_gates.cuh"

// What is made of rows, keys and values: o, dv, dk, dq.
enum class HopperResult { outputs, value_gradients, key_gradients, query_gradients };
template <HopperResult result>
constexpr bool of_later = result == HopperResult::value_gradients || result == HopperResult::key_gradients;
// Whether values decay on their way into the state, not keys: then it stands transposed in registers, with
// what decays as rows.
template <HopperResult result>
constexpr bool turns = result == HopperResult::key_gradients || result == HopperResult::query_gradients;
// Whether the gates have a gradient, which takes terms of those.
template <class Gate, HopperResult result>
constexpr bool leaves_terms = is_learned<Gate>&& turns<result>;

// By a warpgroup: the state; `kept`: copies are left in memory too. S[t][i].r[2 h + c] is row 16 warp +
// lane/4 + 8 h and column 8 i + 2 (lane%4) + c of key channels 64 t .. 64 t + 63 x the block's value
// channels; turned: of value channels x key channels.
template <class Gate, int key_tiles, int columns, bool later, bool turned, bool kept>
struct HopperStates {
  static_assert(!turned || columns == 64, "rows of a warpgroup");
  using Block = HopperBlock<key_tiles, columns, later>;
  using KeyTile = typename Block::KeyTile;
  using ValueTile = typename Block::ValueTile;
  Accumulator S[key_tiles][columns / 8];

  template <class Visit>  // visit(element, key, value)
  __device__ __forceinline__ void for_each(int warp, int lane, Visit visit) {
#pragma unroll
    for (int i = 0; i < key_tiles * columns / 2; ++i) {
      const int tile = i / (columns / 2), at = i % (columns / 2),
                row = 16 * warp + (lane >> 2) + 8 * ((at >> 1) & 1),
                column = 8 * (at >> 2) + 2 * (lane & 3) + (at & 1);
      visit(S[tile][at >> 2].r[at & 3], 64 * tile + (turned ? column : row), turned ? row : column);
    }
  }
  __device__ __forceinline__ void load(const Block& block, int warp, int lane) {
    const float* from = block.tensors.initial_state;
    for_each(warp, lane, [&](float& s, int key, int value) {
      s = from != nullptr && block.has(key, value) ? from[block.place(key, value)] : 0.0f;
    });
  }
  __device__ __forceinline__ void store(const Block& block, int warp, int lane) {
    float* to = block.tensors.final_state;
    if (to == nullptr) return;
    for_each(warp, lane, [&](float& s, int key, int value) {
      if (block.has(key, value)) to[block.place(key, value)] = s;
    });
  }
  // The copy that the results of a chunk are made from.
  __device__ __forceinline__ void leave_copy(const Block& block, int step, int warp, int lane) const {
    block.states.wait_until_empty(step);
#pragma unroll
    for (int tile = 0; tile < key_tiles; ++tile)
      store_rounded<ValueTile>(block.state(step, tile), S[tile], warp, lane);
    fence_async_proxy();
    block.states.filled(step, lane);
    if constexpr (kept) {
      uint4* to = kept_state(block, step);
#pragma unroll
      for (int tile = 0; tile < key_tiles; ++tile)
        if (64 * tile < block.tensors.key_channels)
          keep_state(to + tile * assay::scalar::KeptState::pieces, S[tile], 32 * warp + lane);
    }
  }
  // Channels of a tile as rows, 16 tokens as places, each token times its weight and rounded again.
  template <class T>
  __device__ __forceinline__ OperandBf16 weighed(const Block& block, int step, const char* tile, int token,
                                                 int warp, int lane) const {
    OperandBf16 k = turned_operand<T>(tile, 16 * warp, token, lane);
    if constexpr (has_decay<Gate>) {
      const float* weights = block.decays(step).weights.of_token + token + 2 * (lane & 3);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 w = *reinterpret_cast<const float2*>(weights + 8 * (i >> 1));
        const Pair<Bf16> pair{k.r[i]};
        k.r[i] = to_bf16_pair(pair.low() * w.x, pair.high() * w.y);
      }
    }
    return k;
  }
  // Leaves a copy, then S <- keep S + (factor S + dS); later: scale times dS.
  __device__ __forceinline__ void advance(const Block& block, int step, float scale, int warp, int lane) {
    Accumulator sum[key_tiles][columns / 8];
    OperandBf16 k[turned ? 4 : 4 * key_tiles];
    block.chunks.wait_until_full(step);
    block.clear_beyond_end(step, 0);
#pragma unroll
    for (int i = 0; i < int(sizeof k / sizeof *k); ++i)
      if constexpr (turned)
        k[i] = weighed<ValueTile>(block, step, block.values(step), 16 * i, warp, lane);
      else
        k[i] = weighed<KeyTile>(block, step, block.keys(step, i >> 2), 16 * (i & 3), warp, lane);
    begin_products(k);
#pragma unroll
    for (int tile = 0; tile < key_tiles; ++tile)
      if constexpr (turned)
        add_products_with<KeyTile>(sum[tile], k, block.keys(step, tile), false);
      else
        add_products_with<ValueTile>(sum[tile], k + 4 * tile, block.values(step), false);
    commit_products();
    leave_copy(block, step, warp, lane);
    StateDecay decay{};
    if constexpr (has_decay<Gate>) decay = block.decays(step).weights.state;
    wait_products<0>();
    block.chunks.used(step, lane);
#pragma unroll
    for (int i = 0; i < key_tiles * columns / 2; ++i) {
      const int tile = i / (columns / 2), of = i % (columns / 2);
      float& s = S[tile][of >> 2].r[of & 3];
      const float added = sum[tile][of >> 2].r[of & 3], dS = later ? added * scale : added;
      s = has_decay<Gate> ? fused(decay.keep, s, fused(decay.factor, s, dS)) : s + dS;
    }
  }
};

// By one of two warpgroups: the results of every other chunk. Outputs are scaled at the end, gradients where
// chunk_gradients.cuh does it.
template <class Gate, HopperResult result, int key_tiles, int columns, bool later>
__device__ __forceinline__ void make_results(const HopperBlock<key_tiles, columns, later>& block, float scale,
                                             int first_step, int warp, int lane) {
  using Block = HopperBlock<key_tiles, columns, later>;
  using KeyTile = typename Block::KeyTile;
  using ValueTile = typename Block::ValueTile;
  using Partners = typename PartnersOf<later>::Type;
  constexpr bool gradients = result != HopperResult::outputs;
  const HopperTensors& t = block.tensors;
  const i64 stride = i64(block.heads) * t.value_channels;
  Bf16::Bits* const to = t.result + (block.first + 16 * warp) * stride + i64(block.head) * t.value_channels;
  const Shape shape{block.heads, t.key_channels, t.value_channels, true};
  for (int step = first_step; step < block.steps; step += assay::scalar::hopper_result_groups) {
    ScoreRows<OperandBf16, Partners> scores;
    OutputRows<OperandBf16, columns / 16> out;
    Accumulator(&sums)[columns / 8] = reinterpret_cast<Accumulator(&)[columns / 8]>(out.out);
    PartnerRows partners;
    if constexpr (leaves_terms<Gate, result>) partners.load(block, step, warp, lane);
    block.chunks.wait_until_full(step);
    block.clear_beyond_end(step, 1);
    begin_products();
#pragma unroll
    for (int tile = 0; tile < key_tiles; ++tile)
      add_products_of_rows<KeyTile, KeyTile>(scores.s, block.rows(step, tile), block.keys(step, tile),
                                             tile > 0);
    commit_products();
    block.states.wait_until_full(step);
    begin_products();
#pragma unroll
    for (int tile = 0; tile < key_tiles; ++tile)
      if constexpr (turns<result>)
        add_products_of_rows<KeyTile, KeyTile>(sums, block.rows(step, tile), block.state(step, tile),
                                               tile > 0);
      else
        add_products_with<KeyTile, ValueTile>(sums, block.rows(step, tile), block.state(step, tile),
                                              tile > 0);
    commit_products();
    wait_products<1>();
    scores.template weigh<Gate>(block.decays(step).pairs, warp, lane);
    if constexpr (gradients) scores.times(scale);
    OperandBf16 weighed[4];
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      weighed[m] = scores.operand(m);
#pragma unroll
      for (u32& pair : weighed[m].r) pair = Partners::hold(m, warp) ? pair : 0;
    }
    wait_products<0>();
    block.states.used(step, lane);
    if constexpr (gradients && !later) out.times(scale);
    if constexpr (has_decay<Gate>) out.times(block.decays(step).of_rows(), warp, lane);
    if constexpr (leaves_terms<Gate, result>) partners.dot(block, sums, step, warp, lane);
    begin_products(sums, weighed);
    add_products_with<ValueTile>(sums, weighed, block.values(step), true);
    commit_products();
    wait_products<0>();
    block.chunks.used(step, lane);
    out.template store<Bf16>(to + block.token_of(step) * stride, block.value_begin, t.value_channels,
                             block.rows_of(step) - 16 * warp, gradients ? 1.0f : scale, shape, lane);
  }
}

// Grid (x): at least sequences x heads x blocks of `columns` value channels; hopper_threads.
template <class Gate, HopperResult result, int key_tiles, int columns>
__device__ __forceinline__ void chunk_hopper(const HopperTensors& tensors, const typename Gate::Bits* gates,
                                             const i64* sequences, int count, float scale, int heads) {
  constexpr bool later = of_later<result>, terms = leaves_terms<Gate, result>;
  using Block = HopperBlock<key_tiles, columns, later>;
  extern __shared__ char base[];
  __shared__ Ring<Block::stages> chunks;
  __shared__ Ring<2> states;
  // Told to the compiler as one number for the whole warp: products stay in flight only where it knows that.
  const int lane = int(threadIdx.x) & 31, warp = __shfl_sync(0xffffffffu, int(threadIdx.x) >> 5, 0);
  const int value_blocks = (tensors.value_channels + columns - 1) / columns;
  const int at = int(blockIdx.x) / value_blocks, sequence = at / heads;
  if (sequence >= count) return;
  const int tokens = int(sequences[3 * sequence + 1]);
  const Block block{tensors,
                    int(blockIdx.x) % value_blocks * columns,
                    at % heads,
                    heads,
                    sequence,
                    sequences[3 * sequence],
                    sequences[3 * sequence + 2],
                    tokens,
                    (tokens + 63) / 64,
                    base + (-shared_address(base) & (assay::scalar::HopperLayout::pattern - 1)),
                    chunks,
                    states};
  if (threadIdx.x == 0) {
    chunks.init(has_decay<Gate> ? 2 : 1, 8);
    states.init(4, 4);
    publish_barriers();
  }
  __syncthreads();
  constexpr int producers = 4 + 4 * assay::scalar::hopper_result_groups;
  constexpr bool moves =
      key_tiles * columns == 128;  // the state's warpgroup needs more registers than others
  if (warp < 4) {
    if constexpr (moves) take_registers<200>();
    HopperStates<Gate, key_tiles, columns, later, turns<result>, terms> part;
    part.load(block, warp, lane);
    for (int step = 0; step < block.steps; ++step) part.advance(block, step, scale, warp, lane);
    part.store(block, warp, lane);
  } else if (warp < producers) {
    if constexpr (moves) take_registers<136>();
    make_results<Gate, result>(block, scale, warp / 4 - 1, warp % 4, lane);
  } else {
    if constexpr (moves) give_registers<40>();
    if (warp == producers && lane == 0)
      copy_chunks(block);
    else if (has_decay<Gate> && warp > producers && warp <= producers + assay::scalar::hopper_result_groups)
      sum_gates<Gate>(block, gates, warp - producers - 1, lane);
  }
}
