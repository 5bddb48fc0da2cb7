// Second kernel of the chunked delta rules. A warp owns one sequence and head and 16 value channels, keeps
// their transposed state in registers as accumulators values x keys, and goes from chunk to chunk, 16 tokens
// at a time, with the operands that chunk_prepare.cuh left:
//   Y = V - (K e^G) S - P U (of earlier tiles)     U = X Y     O = scale ((Q e^G) S + A U)
// and at the chunk's end S <- e^L S + (K e^{L - G})^T U. Backward, D = dL/dS at a chunk's end:
//   Z = (K e^{L - G}) D + scale A^T dO - P^T dV (of later tiles)     dV = X^T Z
//   D <- e^L D + scale (Q e^G)^T dO - (K e^G)^T dV
// Everything is transposed, so that what comes out of a product is an operand of the next one; only U and dV
// pass through shared memory, which the warp alone uses.
#pragma once
#include "../channel/fragment.cuh"
#include "../device/operand.cuh"
#include "chunk_layout.h"

namespace rule {

using assay::delta::PreparedLayout;

// 16 values x 16 key channels or tokens: rows values lane/4 and lane/4 + 8.
struct ValueBlock {
  Accumulator c[2];

  __device__ __forceinline__ void clear() { c[0].clear(), c[1].clear(); }
  __device__ __forceinline__ void as_places(float (&x)[2][4]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i >> 2][i & 3] = c[i & 1].r[2 * (i >> 2) + ((i & 3) >> 1)];
  }
  template <class Operand>
  __device__ __forceinline__ void add(const Operand& a, const Operand& b) {
    multiply(c[0], a, b, 0), multiply(c[1], a, b, 1);
  }
};

// 16 tokens of 16 value channels; zeros where there is no token or channel.
template <class Format>
__device__ __forceinline__ void load_values(float (&x)[2][4], const typename Format::Bits* from, i64 stride,
                                            int tile, int rows, int live_values, int lane) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int value = (lane >> 2) + 8 * (i >> 2), token = 16 * tile + element_of(i & 3, lane);
    x[i >> 2][i & 3] =
        token < rows && value < live_values ? Format::decode(from[token * stride + value]) : 0.0f;
  }
}
template <class Format>
__device__ __forceinline__ void store_values(const float (&x)[2][4], typename Format::Bits* to, i64 stride,
                                             int tile, int rows, int live_values, int lane) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int value = (lane >> 2) + 8 * (i >> 2), token = 16 * tile + element_of(i & 3, lane);
    if (token < rows && value < live_values) to[token * stride + value] = Format::encode(x[i >> 2][i & 3]);
  }
}

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
  // `at`: the element of the warp's first value channel and key channel 0.
  __device__ __forceinline__ void load(const float* from, i64 at, int K, int V, int live_values, int lane) {
    for_each(lane, [&](float& s, int value, int key) {
      s = from != nullptr && key < K && value < live_values ? from[at + i64(key) * V + value] : 0.0f;
    });
  }
  __device__ __forceinline__ void store(float* to, i64 at, int K, int V, int live_values, int lane) {
    for_each(lane, [&](float& s, int value, int key) {
      if (key < K && value < live_values) to[at + i64(key) * V + value] = s;
    });
  }
  // y += (reads) S of one tile of tokens, and o += (queries) S where that is asked for.
  template <bool queries>
  __device__ __forceinline__ void read(const char* prepared, const PreparedLayout& layout, int tile,
                                       ValueBlock& y, ValueBlock& o, int lane) const {
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      if (group >= layout.key_groups) continue;
      float x[2][4];
      S[group].as_places(x);
      const Operand s = Operand::of(x);
      y.add(s, Operand::load(prepared + layout.reads(tile, group), lane));
      if constexpr (queries) o.add(s, Operand::load(prepared + layout.queries(tile, group), lane));
    }
  }
  // S <- e^L S + (writes) U, and + (cotangent writes) dO; U, dO: `tiles` operands of the chunk's tokens.
  template <bool back>
  __device__ __forceinline__ void advance(const char* prepared, const PreparedLayout& layout,
                                          const char* updates, const char* cotangents, int tiles, int lane) {
    const float* decays = reinterpret_cast<const float*>(prepared + layout.decays());
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      if (group >= layout.key_groups) continue;
      ValueBlock sum;
      sum.clear();
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        sum.add(Operand::load(updates + tile * Operand::block_bytes, lane),
                Operand::load(prepared + layout.writes(group, tile), lane));
        if constexpr (back)
          sum.add(Operand::load(cotangents + tile * Operand::block_bytes, lane),
                  Operand::load(prepared + layout.cotangent_writes(group, tile), lane));
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float e = decays[16 * group + 4 * (lane & 3) + (i >> 2) + 2 * (i & 1)];
        float& s = S[group].c[i >> 2].r[i & 3];
        s = fused(e, s, sum.c[i >> 2].r[i & 3]);
      }
    }
  }
};

// Where a warp of the scans works.
struct ScanPlace {
  int lane, warp, head, sequence, first_value, live_values;
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
};

// Either o and the final state, or what gradients start from: residuals v - S'^T k and updates u of all
// tokens, the state at every chunk's start.
//   v, o, residuals, updates [token, heads, V]; prepared as PreparedLayout says [chunk][heads]; states
//   [chunk, heads, K, V], initial_state, final_state [N, heads, K, V]; fp32 but for v and o
//   sequences [N][3]: first token, tokens, first chunk
template <class Format, int capacity, bool outputs>
__device__ __forceinline__ void scan(const typename Format::Bits* v, const char* prepared,
                                     const float* initial_state, typename Format::Bits* o, float* residuals,
                                     float* updates, float* states, float* final_state, const i64* sequences,
                                     float scale, int heads, int K, int V) {
  using Operand = typename OperandOf<Format>::Type;
  __shared__ __align__(16) char of_warps[4][4][Operand::block_bytes];
  const ScanPlace place(sequences, heads, K, V);
  const int lane = place.lane, live_values = place.live_values;
  if (live_values <= 0) return;
  const i64 stride = i64(heads) * V;
  const PreparedLayout layout(Operand::block_bytes, (K + 15) / 16);
  char* const written = of_warps[place.warp][0];

  ScanState<Format, capacity> x;
  x.load(initial_state, place.state, K, V, live_values, lane);
#pragma unroll 1
  for (i64 begin = 0; begin < place.tokens; begin += 64) {
    const i64 chunk = (place.slot + begin / 64) * heads + place.head;
    const char* const at = prepared + chunk * layout.bytes();
    const int rows = int(min(i64(64), place.tokens - begin)), tiles = (rows + 15) / 16;
    const i64 token = place.value + begin * stride;
    if constexpr (!outputs) x.store(states, chunk * K * V + place.first_value, K, V, live_values, lane);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      float y[2][4], u[2][4];
      load_values<Format>(y, v + token, stride, tile, rows, live_values, lane);
      ValueBlock sum, out;
      sum.clear(), out.clear();
      x.template read<outputs>(at, layout, tile, sum, out, lane);
#pragma unroll 1
      for (int earlier = 0; earlier < tile; ++earlier)
        sum.add(Operand::load(written + earlier * Operand::block_bytes, lane),
                Operand::load(at + layout.removal(tile, earlier), lane));
      sum.as_places(u);
#pragma unroll
      for (int i = 0; i < 8; ++i) y[i >> 2][i & 3] = y[i >> 2][i & 3] + u[i >> 2][i & 3];
      ValueBlock solved;
      solved.clear();
      solved.add(OperandTf32x3::of(y), OperandTf32x3::load(at + layout.solve(tile), lane));
      solved.as_places(u);
      Operand::store_values(written + tile * Operand::block_bytes, lane, u);
      __syncwarp();
      if constexpr (outputs) {
#pragma unroll 1
        for (int earlier = 0; earlier <= tile; ++earlier)
          out.add(Operand::load(written + earlier * Operand::block_bytes, lane),
                  Operand::load(at + layout.weight(tile, earlier), lane));
        out.as_places(y);
#pragma unroll
        for (int i = 0; i < 8; ++i) y[i >> 2][i & 3] = y[i >> 2][i & 3] * scale;
        store_values<Format>(y, o + token, stride, tile, rows, live_values, lane);
      } else {
        store_values<Fp32>(u, updates + token, stride, tile, rows, live_values, lane);
        ValueBlock own;
        own.clear();
        own.add(Operand::load(written + tile * Operand::block_bytes, lane),
                Operand::load(at + layout.removal(tile, tile), lane));
        own.as_places(u);
#pragma unroll
        for (int i = 0; i < 8; ++i) y[i >> 2][i & 3] = y[i >> 2][i & 3] + u[i >> 2][i & 3];
        store_values<Fp32>(y, residuals + token, stride, tile, rows, live_values, lane);
      }
    }
    x.template advance<false>(at, layout, written, nullptr, tiles, lane);
    __syncwarp();
  }
  if constexpr (outputs) x.store(final_state, place.state, K, V, live_values, lane);
}

// Last chunk first: dv, and in fp32 the same (pulls) and du (.) residual (products, or null), du = G^T k, the
// gradient D of the state at every chunk's end, and dinitial_state (or null).
template <class Format, int capacity>
__device__ __forceinline__ void scan_back(const typename Format::Bits* d_o, const char* prepared,
                                          const float* dfinal_state, const float* residuals,
                                          typename Format::Bits* dv, float* pulls, float* products,
                                          float* adjoints, float* dinitial_state, const i64* sequences,
                                          int heads, int K, int V) {
  using Operand = typename OperandOf<Format>::Type;
  __shared__ __align__(16) char of_warps[4][8][Operand::block_bytes];
  const ScanPlace place(sequences, heads, K, V);
  const int lane = place.lane, live_values = place.live_values;
  if (live_values <= 0) return;
  const i64 stride = i64(heads) * V;
  const PreparedLayout layout(Operand::block_bytes, (K + 15) / 16);
  char* const passed = of_warps[place.warp][0];
  char* const cotangents = of_warps[place.warp][4];

  ScanState<Format, capacity> x;
  x.load(dfinal_state, place.state, K, V, live_values, lane);
#pragma unroll 1
  for (i64 begin = (place.tokens - 1) / 64 * 64; begin >= 0 && place.tokens > 0; begin -= 64) {
    const i64 chunk = (place.slot + begin / 64) * heads + place.head;
    const char* const at = prepared + chunk * layout.bytes();
    const int rows = int(min(i64(64), place.tokens - begin)), tiles = (rows + 15) / 16;
    const i64 token = place.value + begin * stride;
    x.store(adjoints, chunk * K * V + place.first_value, K, V, live_values, lane);
#pragma unroll 1
    for (int tile = tiles - 1; tile >= 0; --tile) {
      float y[2][4], u[2][4];
      load_values<Format>(y, d_o + token, stride, tile, rows, live_values, lane);
      Operand::store_values(cotangents + tile * Operand::block_bytes, lane, y);
      __syncwarp();
      ValueBlock sum, none;
      sum.clear();
      x.template read<false>(at, layout, tile, sum, none, lane);
#pragma unroll 1
      for (int later = tile; later < tiles; ++later) {
        sum.add(Operand::load(cotangents + later * Operand::block_bytes, lane),
                Operand::load(at + layout.weight(later, tile), lane));
        if (later > tile)
          sum.add(Operand::load(passed + later * Operand::block_bytes, lane),
                  Operand::load(at + layout.removal(later, tile), lane));
      }
      sum.as_places(y);
      ValueBlock solved, own;
      solved.clear(), own.clear();
      solved.add(OperandTf32x3::of(y), OperandTf32x3::load(at + layout.solve(tile), lane));
      solved.as_places(u);
      Operand::store_values(passed + tile * Operand::block_bytes, lane, u);
      __syncwarp();
      store_values<Format>(u, dv + token, stride, tile, rows, live_values, lane);
      store_values<Fp32>(u, pulls + token, stride, tile, rows, live_values, lane);
      if (products == nullptr) continue;
      own.add(Operand::load(passed + tile * Operand::block_bytes, lane),
              Operand::load(at + layout.removal(tile, tile), lane));
      own.as_places(u);
      float residual[2][4];
      load_values<Fp32>(residual, residuals + token, stride, tile, rows, live_values, lane);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        y[i >> 2][i & 3] = (y[i >> 2][i & 3] + u[i >> 2][i & 3]) * residual[i >> 2][i & 3];
      store_values<Fp32>(y, products + token, stride, tile, rows, live_values, lane);
    }
    x.template advance<true>(at, layout, passed, cotangents, tiles, lane);
    __syncwarp();
  }
  if (dinitial_state != nullptr) x.store(dinitial_state, place.state, K, V, live_values, lane);
}

}  // namespace rule
