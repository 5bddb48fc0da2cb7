// Second kernel of rwkv7 in chunks. A warp owns one sequence and head and 16 value channels, keeps their
// transposed state in registers as accumulators values x keys, and goes from chunk to chunk, 16 tokens at a
// time, with the operands that chunk_prepare.cuh left:
//   Y = (A e^E) S + AB U (of earlier tiles) + AK V     U = X Y     O = scale ((R e^G) S + RB U + RK V)
// and at the chunk's end S <- e^L S + (B e^{L - G})^T U + (K e^{L - G})^T V: row i of U is S_{i-1}^T a_i.
// Backward, D = dL/dS at a chunk's end, is the same of later tiles with transposed operands:
//   Z = (B e^{L - G}) D + AB^T U + scale RB^T dO     U = X^T Z
//   dV = (K e^{L - G}) D + AK^T U + scale RK^T dO
//   D <- e^L D + (A e^E)^T U + scale (R e^G)^T dO: row i of U is G_i^T b_i.
#pragma once
#include "../delta/chunk_scan.cuh"
#include "chunk_layout.h"

namespace general {

using assay::rwkv7::PreparedLayout;

// Which way a scan goes and what it leaves: outputs, and what gradients start from, U and the state where a
// chunk is entered. `early`, `late`: as in delta/scan_source.cuh.
struct ScanForward {
  using Layout = PreparedLayout;
  static constexpr bool back = false, outputs = true, keeps = false;
  static constexpr int early = 8, late = 8;
};
struct ScanStates {
  using Layout = PreparedLayout;
  static constexpr bool back = false, outputs = false, keeps = true;
  static constexpr int early = 4, late = 8;
};
struct ScanBack {
  using Layout = PreparedLayout;
  static constexpr bool back = true, outputs = true, keeps = true;
  static constexpr int early = 8, late = 8;
};

// A chunk's tiles in the order in which a scan has them, and its operands of two of them.
template <class Kind>
struct Order {
  static __device__ __forceinline__ constexpr int tile(int n) { return Kind::back ? 3 - n : n; }
  // Of the n-th tile with the m-th, m <= n.
  static __device__ __forceinline__ constexpr int later(int n, int m) { return tile(Kind::back ? m : n); }
  static __device__ __forceinline__ constexpr int earlier(int n, int m) { return tile(Kind::back ? n : m); }
};

template <class Format>
using KeptBits = typename StateOf<Format>::Type::Bits;

// A chunk's updates U from what was read of the state, and what they and the values add to the outputs.
template <class Format, class Kind, class Operand, class Source>
__device__ __forceinline__ void solve_chunk(const Source& source, const rule::ChunkOperands& at,
                                            rule::ValueBlock (&sum)[4], rule::ValueBlock (&out)[4],
                                            Operand (&updated)[4], const Operand (&given)[4],
                                            KeptBits<Format>* updates, int rows, int stride, int live_values,
                                            int lane) {
  const PreparedLayout& layout = source.layout;
  using Of = Order<Kind>;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int tile = Of::tile(n);
    float y[2][4], u[2][4];
#pragma unroll
    for (int m = 0; m <= n; ++m) {
      const int other = Of::tile(m), later = Of::later(n, m), earlier = Of::earlier(n, m);
      sum[tile].add(given[other], Operand::load(at.pairs + layout.feed(later, earlier), lane));
      if (m < n)
        sum[tile].add(updated[other], Operand::load(at.pairs + layout.removal(later, earlier), lane));
    }
    sum[tile].as_places(y);
    rule::solve<Format>(u, y, at.pairs + layout.solve(tile), lane);
    rule::clear_missing(u, tile, rows);
    updated[tile] = Operand::of(u);
    if constexpr (Kind::keeps)
      rule::store_values<typename StateOf<Format>::Type>(u, updates, stride, tile, rows, live_values,
                                                         source.vector, lane);
  }
  if constexpr (Kind::outputs)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int m = 0; m <= n; ++m) {
        const int later = Of::later(n, m), earlier = Of::earlier(n, m);
        out[Of::tile(n)].add(updated[Of::tile(m)],
                             Operand::load(at.pairs + layout.weight(later, earlier), lane));
        out[Of::tile(n)].add(given[Of::tile(m)],
                             Operand::load(at.pairs + layout.direct(later, earlier), lane));
      }
}

//   values (v or do), outputs (o or dv), updates (U) [token, heads, V]; prepared as PreparedLayout says
//   [chunk][heads]; states as PlainStates has them; from, to (or null) [N, heads, K, V] fp32: the state
//   before the first chunk and after the last
//   sequences [N][3]: first token, tokens, first chunk
template <class Format, int capacity, class Kind, bool whole>
__device__ __forceinline__ void scan(const typename Format::Bits* values, const char* prepared,
                                     const float* from, typename Format::Bits* outputs,
                                     KeptBits<Format>* updates, KeptBits<Format>* states, float* to,
                                     const i64* sequences, float scale, int heads, int K, int V,
                                     bool vector) {
  using Operand = typename OperandOf<Format>::Type;
  if constexpr (whole) K = capacity, vector = true;
  rule::ScanPlace place(sequences, heads, K, V);
  const auto source = place.template source<Format, capacity, Kind>(prepared, values, heads, K, V, vector);
  if constexpr (whole) place.live_values = 16;
  const int lane = place.lane, live_values = place.live_values, stride = heads * V;
  const bool live = live_values > 0;
  if (!source.ahead && !live) return;

  rule::ScanState<Format, capacity> x;
  x.load(from, place.state, K, V, live_values, lane);
  const i64 chunks = (place.tokens + 63) / 64;
  source.start(Kind::back ? chunks - 1 : 0), source.start_pairs(Kind::back ? chunks - 1 : 0);
#pragma unroll 1
  for (i64 step = 0; step < chunks; ++step) {
    const i64 chunk = Kind::back ? chunks - 1 - step : step, next = Kind::back ? chunk - 1 : chunk + 1;
    const int rows = source.rows(chunk);
    const i64 token = place.value + 64 * chunk * stride;
    rule::ValueBlock sum[4], out[4];
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) sum[tile].clear(), out[tile].clear();
    const rule::ChunkOperands at = source.enter(chunk);
    Operand updated[4], given[4];
    if (live) {
      if constexpr (Kind::keeps)
        x.keep({states}, (place.slot + chunk) * heads + place.head, place.first_value / 16,
               {heads, K, V, vector}, lane);
      x.template read<Kind::outputs>(at.rows, source.layout, sum, out, lane);
#pragma unroll
      for (int tile = 0; tile < 4; ++tile) {
        float y[2][4];
        source.load(y, chunk, tile, place.warp, lane);
        given[tile] = Operand::of(y);
      }
    }
    source.pass_on(next);
    if (live) {
      solve_chunk<Format, Kind>(source, at, sum, out, updated, given, Kind::keeps ? updates + token : nullptr,
                                rows, stride, live_values, lane);
      if constexpr (Kind::outputs)
        rule::store_outputs<Format>(out, outputs + token, stride, scale, rows, live_values, source.vector,
                                    lane);
    }
    source.wait_late(next);
    if (live) x.template advance<true>(at, source.layout, updated, given, lane);
  }
  if (to != nullptr) x.store(to, place.state, K, V, live_values, lane);
}

}  // namespace general
