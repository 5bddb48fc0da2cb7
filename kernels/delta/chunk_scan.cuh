// Second kernel of the chunked delta rules. A warp owns one sequence and head and 16 value channels, keeps
// their transposed state in registers as accumulators values x keys, and goes from chunk to chunk, 16 tokens
// at a time, with the operands that chunk_prepare.cuh left:
//   Y = V - (K e^G) S - P U (of earlier tiles)     U = X Y     O = scale ((Q e^G) S + A U)
// and at the chunk's end S <- e^L S + (K e^{L - G})^T U. Backward, D = dL/dS at a chunk's end:
//   Z = (K e^{L - G}) D + scale A^T dO - P^T dV (of later tiles)     dV = X^T Z
//   D <- e^L D + scale (Q e^G)^T dO - (K e^G)^T dV
// Everything is transposed, so that what comes out of a product is an operand of the next one. A tile that
// a chunk does not have is gone through as one of zeros.
#pragma once
#include "../device/states.cuh"
#include "scan_source.cuh"
#include "solve_operand.cuh"

namespace rule {

using assay::delta::PreparedLayout;

template <class Format, int capacity>
struct ScanState {
  using Operand = typename OperandOf<Format>::Type;
  static constexpr int groups = capacity / 16;
  ValueBlock S[groups];

  // visit(element, value, key): of the warp's.
  template <class Visit>
  __device__ __forceinline__ void for_each(int lane, Visit visit) {
#pragma unroll
    for (int i = 0; i < groups * 8; ++i)
      visit(S[i >> 3].c[(i >> 2) & 1].r[i & 3], (lane >> 2) + 8 * ((i >> 1) & 1),
            16 * (i >> 3) + 4 * (lane & 3) + ((i >> 2) & 1) + 2 * (i & 1));
  }
  // `at`: the warp's first value channel and key channel 0.
  __device__ __forceinline__ void load(const float* from, i64 at, int K, int V, int live_values, int lane) {
    const bool given = from != nullptr;
    if (given) from += at;
    for_each(lane, [&](float& s, int value, int key) {
      s = given && key < K && value < live_values ? from[key * V + value] : 0.0f;
    });
  }
  __device__ __forceinline__ void store(float* to, i64 at, int K, int V, int live_values, int lane) {
    to += at;
    for_each(lane, [&](float& s, int value, int key) {
      if (key < K && value < live_values) to[key * V + value] = s;
    });
  }
  // For gradients. `at`: the chunk and head.
  __device__ __forceinline__ void keep(const PlainStates<Format, NeighbourKeys>& to, i64 at, int value_group,
                                       const Shape& shape, int lane) const {
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      if (group >= shape.key_groups()) continue;
      float x[2][4];
      S[group].as_places(x);
      to.store(at, value_group, group, shape, lane, x);
    }
  }
  // y += (reads) S of the chunk's tiles, and o += (queries) S where that is asked for.
  template <bool queries, class Layout>
  __device__ __forceinline__ void read(const char* prepared, const Layout& layout, ValueBlock (&y)[4],
                                       ValueBlock (&o)[4], int lane) const {
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      if (group >= layout.key_groups) continue;
      float x[2][4];
      S[group].as_places(x);
      const Operand s = Operand::of(x);
#pragma unroll
      for (int tile = 0; tile < 4; ++tile) {
        y[tile].add(s, Operand::load(prepared + layout.reads(tile, group), lane));
        if constexpr (queries) o[tile].add(s, Operand::load(prepared + layout.queries(tile, group), lane));
      }
    }
  }
  // S <- e^L S + (writes) U, and + (value writes) V: operands of the chunk's tiles.
  template <bool values, class Layout>
  __device__ __forceinline__ void advance(const ChunkOperands& at, const Layout& layout,
                                          const Operand (&updates)[4], const Operand (&given)[4], int lane) {
    const float4* const decays = reinterpret_cast<const float4*>(at.decays);
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      if (group >= layout.key_groups) continue;
      ValueBlock sum;
      sum.clear();
#pragma unroll
      for (int tile = 0; tile < 4; ++tile) {
        sum.add(updates[tile], Operand::load(at.rows + layout.writes(group, tile), lane));
        if constexpr (values)
          sum.add(given[tile], Operand::load(at.rows + layout.value_writes(group, tile), lane));
      }
      const float4 x = decays[4 * group + (lane & 3)];
      const float e[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float& s = S[group].c[i >> 2].r[i & 3];
        s = fused(e[(i >> 2) + 2 * (i & 1)], s, sum.c[i >> 2].r[i & 3]);
      }
    }
  }
};

// x = X y.
template <class Format>
__device__ __forceinline__ void solve(float (&x)[2][4], const float (&y)[2][4], const char* of_tile,
                                      int lane) {
  ValueBlock solved;
  solved.clear();
  solved.add(SolveOperand<Format>::of(y), SolveOperand<Format>::load(of_tile, lane));
  solved.as_places(x);
}
// y += what a tile's own updates take away.
template <class Operand>
__device__ __forceinline__ void add_own(float (&y)[2][4], const Operand& updates, const char* removal,
                                        int lane) {
  ValueBlock own;
  own.clear();
  own.add(updates, Operand::load(removal, lane));
  float x[2][4];
  own.as_places(x);
#pragma unroll
  for (int i = 0; i < 8; ++i) y[i >> 2][i & 3] = y[i >> 2][i & 3] + x[i >> 2][i & 3];
}
// Zeros where a chunk has no such tile, so that nothing of it spreads.
__device__ __forceinline__ void clear_missing(float (&x)[2][4], int tile, int rows) {
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i >> 2][i & 3] = 16 * tile < rows ? x[i >> 2][i & 3] : 0.0f;
}

// Where a warp of the scans works.
struct ScanPlace {
  int lane, warp, head, sequence, first_value, live_values;  // of the warp's value channels
  i64 first, tokens, slot, state, value;  // state, value: elements, of the sequence's state and first token

  __device__ __forceinline__ ScanPlace(const i64* sequences, int heads, int K, int V) {
    lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
    const int value_blocks = (V + assay::delta::scan_values - 1) / assay::delta::scan_values;
    int block = int(blockIdx.x);
    first_value = block % value_blocks * assay::delta::scan_values + 16 * warp;
    block /= value_blocks;
    head = block % heads, sequence = block / heads, live_values = V - first_value;
    first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1], slot = sequences[3 * sequence + 2];
    state = (i64(sequence) * heads + head) * K * V + first_value;
    value = (first * heads + head) * V + first_value;
  }
  template <class Format, int capacity, class Kind>
  __device__ __forceinline__ ScanSource<Format, capacity, Kind> source(const char* prepared,
                                                                       const typename Format::Bits* values,
                                                                       int heads, int K, int V,
                                                                       bool vector) const {
    extern __shared__ __align__(16) char shared[];
    using Operand = typename OperandOf<Format>::Type;
    const int key_groups = (K + 15) / 16;
    const typename Kind::Layout layout(Operand::block_bytes, key_groups);
    using Source = ScanSource<Format, capacity, Kind>;
    return {layout,
            assay::delta::ScanLayout<typename Kind::Layout>(sizes_of_format<Format>, key_groups,
                                                            Source::whole_ahead),
            prepared + (slot * heads + head) * layout.bytes(),
            i64(heads) * layout.bytes(),
            tokens,
            values + value - 16 * warp,
            heads * V,
            live_values + 16 * warp,
            vector,
            shared};
  }
};

template <bool whole_>
struct ScanSizes {
  static constexpr bool whole = whole_;
};
// run(ScanSizes), whole where K == capacity and V is a multiple of 64: then places and bounds are known when
// this is compiled.
template <class Format, int capacity, class Layout = PreparedLayout, class Run>
__device__ __forceinline__ void for_sizes(int K, int V, Run run) {
  if constexpr (assay::delta::scans_ahead<Layout>(sizes_of_format<Format>, capacity))
    if (K == capacity && V % assay::delta::scan_values == 0) return run(ScanSizes<true>());
  run(ScanSizes<false>());
}

// What scans keep for the gradients, as StateOf<Format> has numbers: of tokens [token, heads, V], and states
// at chunks' starts, or their gradients at chunks' ends. What is null is not asked for.
//   forward    updates u, residuals v - S'^T k
//   backward   updates dr = dv, residuals du = G^T k
template <class Format>
struct Kept {
  using Type = typename StateOf<Format>::Type;
  typename Type::Bits *updates, *residuals;
  PlainStates<Format, NeighbourKeys> states;
};

// Either o and the final state, or what gradients start from.
//   v, o [token, heads, V]; prepared as PreparedLayout says [chunk][heads]; initial_state, final_state [N,
//   heads, K, V] fp32; sequences [N][3]: first token, tokens, first chunk
template <class Format, int capacity, class Kind, bool whole>
__device__ __forceinline__ void scan(const typename Format::Bits* v, const char* prepared,
                                     const float* initial_state, typename Format::Bits* o,
                                     const Kept<Format>& kept, float* final_state, const i64* sequences,
                                     float scale, int heads, int K, int V, bool vector) {
  using Operand = typename OperandOf<Format>::Type;
  if constexpr (whole) K = capacity, vector = true;
  ScanPlace place(sequences, heads, K, V);
  const auto source = place.template source<Format, capacity, Kind>(prepared, v, heads, K, V, vector);
  if constexpr (whole) place.live_values = 16;
  const PreparedLayout& layout = source.layout;
  const int lane = place.lane, live_values = place.live_values, stride = heads * V;
  const bool live = live_values > 0;
  if (!source.ahead && !live) return;

  ScanState<Format, capacity> x;
  x.load(initial_state, place.state, K, V, live_values, lane);
  source.start(0), source.start_pairs(0);
#pragma unroll 1
  for (i64 chunk = 0; 64 * chunk < place.tokens; ++chunk) {
    const int rows = source.rows(chunk);
    const i64 token = place.value + 64 * chunk * stride;
    ValueBlock sum[4], out[4];
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) sum[tile].clear(), out[tile].clear();
    const ChunkOperands at = source.enter(chunk);
    if (live) {
      if constexpr (!Kind::outputs)
        x.keep(kept.states, (place.slot + chunk) * heads + place.head, place.first_value / 16,
               {heads, K, V, vector}, lane);
      x.template read<Kind::outputs>(at.rows, layout, sum, out, lane);
    }
    source.pass_on(chunk + 1);
    Operand updated[4];
    if (live) {
#pragma unroll
      for (int tile = 0; tile < 4; ++tile) {
        float y[2][4], u[2][4];
        source.load(y, chunk, tile, place.warp, lane);
#pragma unroll
        for (int earlier = 0; earlier < tile; ++earlier)
          sum[tile].add(updated[earlier], Operand::load(at.pairs + layout.removal(tile, earlier), lane));
        sum[tile].as_places(u);
#pragma unroll
        for (int i = 0; i < 8; ++i) y[i >> 2][i & 3] = y[i >> 2][i & 3] + u[i >> 2][i & 3];
        solve<Format>(u, y, at.pairs + layout.solve(tile), lane);
        clear_missing(u, tile, rows);
        updated[tile] = Operand::of(u);
        if constexpr (!Kind::outputs) {
          using Type = typename Kept<Format>::Type;
          store_values<Type>(u, kept.updates + token, stride, tile, rows, live_values, vector, lane);
          if (kept.residuals == nullptr) continue;
          add_own(y, updated[tile], at.pairs + layout.removal(tile, tile), lane);
          store_values<Type>(y, kept.residuals + token, stride, tile, rows, live_values, vector, lane);
        }
      }
      if constexpr (Kind::outputs) {
#pragma unroll
        for (int tile = 0; tile < 4; ++tile)
#pragma unroll
          for (int earlier = 0; earlier <= tile; ++earlier)
            out[tile].add(updated[earlier], Operand::load(at.pairs + layout.weight(tile, earlier), lane));
        if (whole && rows == 64)
          store_outputs<Format>(out, o + token, stride, scale, 64, live_values, vector, lane);
        else
          store_outputs<Format>(out, o + token, stride, scale, rows, live_values, vector, lane);
      }
    }
    source.wait_late(chunk + 1);
    if (live) x.template advance<false>(at, layout, updated, updated, lane);
  }
  if constexpr (Kind::outputs) x.store(final_state, place.state, K, V, live_values, lane);
}

// Last chunk first: dv, what else gradients start from, and dinitial_state (or null). kept.updates is null
// where dv is the same numbers.
template <class Format, int capacity, bool whole>
__device__ __forceinline__ void scan_back(const typename Format::Bits* d_o, const char* prepared,
                                          const float* dfinal_state, typename Format::Bits* dv,
                                          const Kept<Format>& kept, float* dinitial_state,
                                          const i64* sequences, int heads, int K, int V, bool vector) {
  using Operand = typename OperandOf<Format>::Type;
  if constexpr (whole) K = capacity, vector = true;
  ScanPlace place(sequences, heads, K, V);
  const auto source = place.template source<Format, capacity, ScanBack>(prepared, d_o, heads, K, V, vector);
  if constexpr (whole) place.live_values = 16;
  const PreparedLayout& layout = source.layout;
  const int lane = place.lane, live_values = place.live_values, stride = heads * V;
  const bool live = live_values > 0;
  if (!source.ahead && !live) return;

  ScanState<Format, capacity> x;
  x.load(dfinal_state, place.state, K, V, live_values, lane);
  const i64 last = (place.tokens + 63) / 64 - 1;
  source.start(last), source.start_pairs(last);
#pragma unroll 1
  for (i64 chunk = last; chunk >= 0; --chunk) {
    const int rows = source.rows(chunk);
    const i64 token = place.value + 64 * chunk * stride;
    ValueBlock sum[4];
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) sum[tile].clear();
    const ChunkOperands at = source.enter(chunk);
    if (live) {
      x.keep(kept.states, (place.slot + chunk) * heads + place.head, place.first_value / 16,
             {heads, K, V, vector}, lane);
      x.template read<false>(at.rows, layout, sum, sum, lane);
    }
    source.pass_on(chunk - 1);
    Operand passed[4], cotangents[4];
    if (live) {
#pragma unroll
      for (int tile = 3; tile >= 0; --tile) {
        float y[2][4], u[2][4];
        source.load(y, chunk, tile, place.warp, lane);
        cotangents[tile] = Operand::of(y);
#pragma unroll
        for (int later = tile; later < 4; ++later) {
          sum[tile].add(cotangents[later], Operand::load(at.pairs + layout.weight(later, tile), lane));
          if (later > tile)
            sum[tile].add(passed[later], Operand::load(at.pairs + layout.removal(later, tile), lane));
        }
        sum[tile].as_places(y);
        solve<Format>(u, y, at.pairs + layout.solve(tile), lane);
        clear_missing(u, tile, rows);
        passed[tile] = Operand::of(u);
        store_values<Format>(u, dv + token, stride, tile, rows, live_values, vector, lane);
        using Type = typename Kept<Format>::Type;
        if (kept.updates != nullptr)
          store_values<Type>(u, kept.updates + token, stride, tile, rows, live_values, vector, lane);
        if (kept.residuals == nullptr) continue;
        add_own(y, passed[tile], at.pairs + layout.removal(tile, tile), lane);
        store_values<Type>(y, kept.residuals + token, stride, tile, rows, live_values, vector, lane);
      }
    }
    source.wait_late(chunk - 1);
    if (live) x.template advance<true>(at, layout, passed, cotangents, lane);
  }
  if (dinitial_state != nullptr) x.store(dinitial_state, place.state, K, V, live_values, lane);
}

}  // namespace rule
