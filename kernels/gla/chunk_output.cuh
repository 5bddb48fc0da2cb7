// gla.chunk, second kernel: o_i = scale (sum_c q_ic e^{G_ic} S_c + sum_{j<=i} A_ij v_j), A_ij = sum_c q_ic
// k_jc e^{G_ic - G_jc}. A block owns one chunk of 64 tokens, one head and `columns` value channels; each of
// its 4 warps owns 16 tokens.
//
// No decay is ever a difference. A pair (j, i) of one 16-row tile is split where the bits of j and i first
// differ: with s = 8, 4, 2, 1 that bit, j lies in the first and i in the second half of an aligned block of 2
// s rows, and
//   e^{G_i - G_j} = e^{F_s[i]} e^{B_s[j]},  F_s[i] = sum of g over i's block of s rows up to i, B_s[j] = over
//   j's after j.
// Every row is on one side only at each s, so one exponential per element and s serves, and one set of
// registers is both operands of the product; what the product says of pairs of other s is dropped by
// selection. Pairs of different tiles meet at the tiles' edges: e^{F_16[i]} (product of e^{total} of the
// tiles between) e^{B_16[j]}.
#pragma once
#include "chunk_state.cuh"

template <class Format, int columns>
struct OutputShared {
  using Operand = typename OperandOf<Format>::Type;
  using ValueTile = Tile<Format, columns>;
  static constexpr int query_bytes = 4 * 4 * 1024;  // [warp][key group][lane] q e^{F_16}, fp32
  static constexpr int key_offset = query_bytes;    // [tile 0..2][key group] k e^{B_16}, operands
  static constexpr int total_offset = key_offset + 12 * Operand::block_bytes;  // [tile][64] e^{total}
  static constexpr int value_offset = total_offset + 4 * 64 * 4;
  static constexpr int state_offset = value_offset + ValueTile::bytes;  // [value group][key group] operands
  static constexpr int bytes = state_offset + columns / 16 * 4 * Operand::block_bytes;
};

// Sums over the rows of a tile for the lane's elements: rows row = lane/4 and row + 8, four neighbouring key
// channels.
struct RowSums {
  float up_to[2][4];  // F_s
  float after[2][4];  // B_s
  float total[2][4];  // over the row's block of s rows

  __device__ explicit RowSums(const float (&y)[2][4]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      up_to[i >> 2][i & 3] = total[i >> 2][i & 3] = y[i >> 2][i & 3];
      after[i >> 2][i & 3] = 0.0f;
    }
  }
  // From blocks of s = 1, 2, 4 rows to 2 s: the partner block is 4 s lanes away. One addition deeper.
  __device__ void double_block(int s, bool second) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float partner = __shfl_xor_sync(0xffffffffu, total[i >> 2][i & 3], 4 * s);
      up_to[i >> 2][i & 3] = up_to[i >> 2][i & 3] + (second ? partner : 0.0f);
      after[i >> 2][i & 3] = after[i >> 2][i & 3] + (second ? 0.0f : partner);
      total[i >> 2][i & 3] = total[i >> 2][i & 3] + partner;
    }
  }
  // From 8 to 16 rows: both halves lie in the same lane.
  __device__ void join_halves() {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      up_to[1][c] = up_to[1][c] + total[0][c];
      after[0][c] = after[0][c] + total[1][c];
      total[0][c] = total[1][c] = total[0][c] + total[1][c];
    }
  }
};

// The lane's elements of q, k and g for 16 key channels, as they lie in memory.
template <class Format, class Gate>
struct Rows {
  Quad<Format> q[2], k[2];
  Quad<Gate> g[2];

  // `at`: offset of token 0 of the tile, the head and key channel 0; rows and channels outside are zero.
  __device__ void load(const typename Format::Bits* q_from, const typename Format::Bits* k_from,
                       const typename Gate::Bits* g_from, i64 at, i64 stride, int rows, int channel, int lane,
                       const Shape& shape) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = (lane >> 2) + 8 * half;
      const int count = row < rows ? shape.key_channels - channel : 0;
      const i64 offset = at + row * stride + channel;
      q[half] = load_quad<Format>(q_from + offset, count, shape.vector);
      k[half] = load_quad<Format>(k_from + offset, count, shape.vector);
      g[half] = load_quad<Gate>(g_from + offset, g_from != nullptr ? count : 0, shape.vector);
    }
  }
};

// Scores inside the warp's own tile, summed over the key channels.
struct DiagonalTile {
  Accumulator eight, pair[3][2];  // pair[l][half]: s = 1 << l
  float dot[2];                   // q_i . k_i of the lane's rows, its own channels only

  __device__ void clear() {
    eight.clear();
#pragma unroll
    for (int l = 0; l < 3; ++l) pair[l][0].clear(), pair[l][1].clear();
    dot[0] = dot[1] = 0.0f;
  }

  // The finished tile as x[row][place] of an operand whose places are its 16 tokens.
  __device__ void scores(float (&x)[2][4], int lane) const {
    const int i = lane >> 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float diagonal = dot[half];
      diagonal = diagonal + __shfl_xor_sync(0xffffffffu, diagonal, 1);
      diagonal = diagonal + __shfl_xor_sync(0xffffffffu, diagonal, 2);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int j = 2 * (lane & 3) + h, apart = i ^ j;
        float score = apart & 4 ? pair[2][half].r[2 * half + h]
                                : (apart & 2 ? pair[1][half].r[2 * half + h] : pair[0][half].r[2 * half + h]);
        score = apart == 0 ? diagonal : score;
        x[half][half + 2 * h] = j <= i ? score : 0.0f;  // tokens 0-7 at places 0, 2; 8-15 at places 1, 3
        x[half][(half ^ 1) + 2 * h] = half ? eight.r[2 + h] : 0.0f;
      }
    }
  }
};

template <class Format, class Gate, int columns>
__device__ __forceinline__ void chunk_output(const typename Format::Bits* q, const typename Format::Bits* k,
                                             const typename Format::Bits* v, const typename Gate::Bits* g,
                                             const char* states, typename Format::Bits* o, const i64* chunks,
                                             float scale, Shape shape) {
  using Shared = OutputShared<Format, columns>;
  using Operand = typename Shared::Operand;
  constexpr int value_groups = columns / 16;
  extern __shared__ __align__(16) char shared[];

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5, quarter = lane & 3, row = lane >> 2;
  const int K = shape.key_channels, V = shape.value_channels;
  const int value_blocks = (V + columns - 1) / columns;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * columns;
  block /= value_blocks;
  const int head = block % shape.heads;
  const i64 chunk = block / shape.heads, first = chunks[2 * chunk];
  const int rows = int(chunks[2 * chunk + 1]), live_rows = rows - 16 * warp;
  const int live_value_groups = min(value_groups, shape.value_groups() - (value_begin >> 4));
  const i64 stride = i64(shape.heads) * K, at = ((first + 16 * warp) * shape.heads + head) * K;

  char* queries = shared + warp * 4096;
  char* keys = shared + Shared::key_offset;
  float* totals = reinterpret_cast<float*>(shared + Shared::total_offset);
  load_tile<typename Shared::ValueTile, 128>(shared + Shared::value_offset,
                                             v + (first * shape.heads + head) * V + value_begin,
                                             i64(shape.heads) * V, rows, V - value_begin, shape.vector);

  DiagonalTile diagonal;
  diagonal.clear();
  Accumulator across[3][2];  // [d]: scores with the tile d + 1 before the warp's own
  Accumulator out[value_groups][2];
#pragma unroll
  for (int d = 0; d < 3; ++d) across[d][0].clear(), across[d][1].clear();
#pragma unroll
  for (int i = 0; i < value_groups; ++i) out[i][0].clear(), out[i][1].clear();

  Rows<Format, Gate> next;
  if (live_rows > 0) next.load(q, k, g, at, stride, live_rows, 4 * quarter, lane, shape);

  for (int group_begin = 0; group_begin < shape.key_groups(); group_begin += 4) {
    const int groups = min(4, shape.key_groups() - group_begin);
    if (group_begin > 0) __syncthreads();  // everyone is done with the last 64 key channels
    const char* from = states + (((chunk * shape.heads + head) * shape.value_groups() + (value_begin >> 4)) *
                                     shape.key_groups() +
                                 group_begin) *
                                    i64(Operand::block_bytes);
    const int run = groups * Operand::block_bytes;  // bytes that lie together for one value group
    for (int i = int(threadIdx.x) * 16; i < live_value_groups * 4 * Operand::block_bytes; i += 128 * 16) {
      const int group = i / (4 * Operand::block_bytes), byte = i % (4 * Operand::block_bytes);
      if (byte < run)
        copy_async(shared + Shared::state_offset + i,
                   from + i64(group) * shape.key_groups() * Operand::block_bytes + byte, 16);
    }
    commit_copies();

    if (live_rows > 0)
#pragma unroll 1
      for (int group = 0; group < groups; ++group) {
        float query[2][4], key[2][4], y[2][4], x[2][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          next.q[half].decode(query[half]);
          next.k[half].decode(key[half]);
          next.g[half].decode(y[half]);
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            y[half][c] = y[half][c] * log2_e;
            diagonal.dot[half] = fused(query[half][c], key[half][c], diagonal.dot[half]);
          }
        }
        if (group_begin + group + 1 < shape.key_groups())
          next.load(q, k, g, at, stride, live_rows, 16 * (group_begin + group + 1) + 4 * quarter, lane,
                    shape);

        RowSums sums(y);
#pragma unroll
        for (int l = 0; l < 3; ++l) {
          const bool second = (row >> l) & 1;
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const int half = i >> 2, c = i & 3;
            const float exponent = second ? sums.up_to[half][c] : sums.after[half][c];
            x[half][c] = (second ? query[half][c] : key[half][c]) * power_of_two(exponent);
          }
          const Operand both = Operand::of(x);
          multiply(diagonal.pair[l][0], both, both, 0);
          multiply(diagonal.pair[l][1], both, both, 1);
          sums.double_block(1 << l, second);
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          x[0][c] = key[0][c] * power_of_two(sums.after[0][c]);
          x[1][c] = query[1][c] * power_of_two(sums.up_to[1][c]);
        }
        const Operand both = Operand::of(x);
        multiply(diagonal.eight, both, both, 0);
        sums.join_halves();

        if (warp < 3) {
#pragma unroll
          for (int i = 0; i < 8; ++i)
            x[i >> 2][i & 3] = key[i >> 2][i & 3] * power_of_two(sums.after[i >> 2][i & 3]);
          Operand::store_values(keys + (warp * 4 + group) * Operand::block_bytes, lane, x);
          if (row == 0)
            reinterpret_cast<float4*>(totals)[warp * 16 + group * 4 + quarter] =
                make_float4(power_of_two(sums.total[0][0]), power_of_two(sums.total[0][1]),
                            power_of_two(sums.total[0][2]), power_of_two(sums.total[0][3]));
        }
#pragma unroll
        for (int i = 0; i < 8; ++i)
          x[i >> 2][i & 3] = query[i >> 2][i & 3] * power_of_two(sums.up_to[i >> 2][i & 3]);
        store_floats(queries + group * 1024, lane, x);
      }
    wait_copies<0>();
    __syncthreads();

    if (live_rows > 0)
#pragma unroll 1
      for (int group = 0; group < groups; ++group) {
        float x[2][4];
        load_floats(queries + group * 1024, lane, x);
#pragma unroll
        for (int d = 0; d < 3; ++d)
          if (d < warp) {
            const int tile = warp - 1 - d;
            const Operand a = Operand::of(x),
                          b = Operand::load(keys + (tile * 4 + group) * Operand::block_bytes, lane);
            multiply(across[d][0], a, b, 0);
            multiply(across[d][1], a, b, 1);
            const float4 total = reinterpret_cast<const float4*>(totals)[tile * 16 + group * 4 + quarter];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              x[half][0] = x[half][0] * total.x, x[half][1] = x[half][1] * total.y;
              x[half][2] = x[half][2] * total.z, x[half][3] = x[half][3] * total.w;
            }
          }
        const Operand a = Operand::of(x);
#pragma unroll
        for (int i = 0; i < value_groups; ++i)
          if (i < live_value_groups) {
            const Operand b =
                Operand::load(shared + Shared::state_offset + (i * 4 + group) * Operand::block_bytes, lane);
            multiply(out[i][0], a, b, 0);
            multiply(out[i][1], a, b, 1);
          }
      }
  }
  if (live_rows <= 0) return;

#pragma unroll
  for (int d = 3; d >= 0; --d)
    if (d <= warp) {
      float x[2][4];
      if (d == 0) {
        diagonal.scores(x, lane);
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) x[(i >> 1) & 1][(i >> 2) + 2 * (i & 1)] = across[d - 1][i >> 2].r[i & 3];
      }
      const Operand a = Operand::of(x);
#pragma unroll
      for (int i = 0; i < value_groups; ++i)
        if (i < live_value_groups) {
          Operand b;
          load_columns<typename Shared::ValueTile>(b, shared + Shared::value_offset, 16 * i,
                                                   NaturalTokens{16 * (warp - d)}, lane);
          multiply(out[i][0], a, b, 0);
          multiply(out[i][1], a, b, 1);
        }
    }

#pragma unroll
  for (int i = 0; i < value_groups * 4; ++i) {
    const int half = i & 1, tile = i >> 1, r = row + 8 * half, value = value_begin + 8 * tile + 2 * quarter;
    if (r >= live_rows || value >= V) continue;
    typename Format::Bits* to = o + ((first + 16 * warp + r) * shape.heads + head) * V + value;
    const Accumulator& c = out[tile >> 1][tile & 1];
    store_pair<Format>(to, c.r[2 * half] * scale, c.r[2 * half + 1] * scale, V - value, shape.vector);
  }
}
