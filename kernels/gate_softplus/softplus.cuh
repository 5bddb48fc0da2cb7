// gate_softplus: g = -e^{A_h} softplus(x + bias_hk) over rows of H K columns, and its gradients. The sum x +
// bias is kept exactly, as two floats, so that its rounding does not become an error of the exponent.
//   x, g, dg, dx [token, H, K]; A, dA [H]; bias, dbias [H, K]; A and bias may be null: zeros
#pragma once
#include "../device/format.cuh"
#include "../elementwise/logistic.cuh"
#include "softplus_layout.h"

constexpr int softplus_threads = assay::gate_softplus::threads,
              softplus_tokens = assay::gate_softplus::tokens_per_block;

// What a thread does: `quads` threads stand side by side over four columns each, in as many rows as there is
// place for.
struct SoftplusShape {
  i64 tokens;
  int columns, K, quads, column_blocks;

  __device__ int rows() const { return softplus_threads / quads; }
  __device__ int column() const {
    return int(blockIdx.x % unsigned(column_blocks)) * 4 * quads + 4 * (int(threadIdx.x) % quads);
  }
  __device__ int row() const { return int(threadIdx.x) / quads; }
  __device__ i64 first_token() const { return i64(blockIdx.x / unsigned(column_blocks)) * softplus_tokens; }
  __device__ i64 end_token() const { return min(tokens, first_token() + softplus_tokens); }
};

// The parameters of a thread's columns, e^A and bias; behind the last column its own again.
struct SoftplusColumns {
  float rate[4], bias[4];

  template <class Format>
  __device__ static SoftplusColumns load(const SoftplusShape& s, const typename Format::Bits* A,
                                         const typename Format::Bits* bias) {
    SoftplusColumns p;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int column = min(s.column() + c, s.columns - 1);
      p.rate[c] = A != nullptr ? exponential(Format::decode(A[column / s.K])) : 1.0f;
      p.bias[c] = bias != nullptr ? Format::decode(bias[column]) : 0.0f;
    }
    return p;
  }
};

// The columns of one token: `live` ones from `from` or to `to` on, at least one; four where they are
// `vector`s.
template <class Format>
__device__ __forceinline__ void load_columns(const typename Format::Bits* from, int live, bool vector,
                                             float (&x)[4]) {
  if (vector) {
    load_quad<Format>(from, 4, true).decode(x);
  } else {
    x[0] = Format::decode(from[0]);
#pragma unroll
    for (int c = 1; c < 4; ++c) x[c] = Format::decode(from[min(c, live - 1)]);
  }
}
template <class Format>
__device__ __forceinline__ void store_columns(typename Format::Bits* to, const float (&x)[4], int live,
                                              bool vector) {
  if (vector) {
    store_quad<Format>(to, x);
  } else {
    to[0] = Format::encode(x[0]);
#pragma unroll
    for (int c = 1; c < 4; ++c)
      if (c < live) to[c] = Format::encode(x[c]);
  }
}

template <class Format, class Gate>
__device__ __forceinline__ void softplus_gates(const typename Format::Bits* x, const typename Format::Bits* A,
                                               const typename Format::Bits* bias, typename Gate::Bits* g,
                                               const SoftplusShape& s) {
  const int column = s.column(), live = min(4, s.columns - column);
  if (live <= 0) return;
  const bool vector = s.columns % 4 == 0;
  const SoftplusColumns p = SoftplusColumns::load<Format>(s, A, bias);
#pragma unroll 4
  for (i64 token = s.first_token() + s.row(); token < s.end_token(); token += s.rows()) {
    const i64 at = token * s.columns + column;
    float z[4], y[4];
    load_columns<Format>(x + at, live, vector, z);
#pragma unroll
    for (int c = 0; c < 4; ++c) y[c] = -(p.rate[c] * softplus(Sum::of(z[c], p.bias[c])));
    store_columns<Gate>(g + at, y, live, vector);
  }
}

// One column's sums over the tokens of a block: of dx (for dbias) and of g dg (for dA).
struct SoftplusSums {
  Sum bias, A;
};
static_assert(sizeof(SoftplusSums) == assay::gate_softplus::partial_bytes);

// dx, and where `partial` is not null one SoftplusSums per block of tokens and column: [token block, H K].
template <class Format>
__device__ __forceinline__ void softplus_gradients(const typename Format::Bits* x,
                                                   const typename Format::Bits* A,
                                                   const typename Format::Bits* bias,
                                                   const typename Format::Bits* dg, typename Format::Bits* dx,
                                                   SoftplusSums* partial, const SoftplusShape& s) {
  __shared__ SoftplusSums shared[softplus_threads];
  const int column = s.column(), live = min(4, s.columns - column);
  const bool vector = s.columns % 4 == 0;
  const SoftplusColumns p = SoftplusColumns::load<Format>(s, A, bias);
  SoftplusSums sums[4] = {};
  if (live > 0) {
#pragma unroll 1
    for (i64 token = s.first_token() + s.row(); token < s.end_token(); token += s.rows()) {
      const i64 at = token * s.columns + column;
      float z[4], d[4], y[4];
      load_columns<Format>(x + at, live, vector, z);
      load_columns<Format>(dg + at, live, vector, d);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const Sum argument = Sum::of(z[c], p.bias[c]);
        y[c] = -(p.rate[c] * Logistic::of(argument).at * d[c]);
        sums[c].bias.add(y[c]);
        sums[c].A.add(-(p.rate[c] * softplus(argument) * d[c]));
      }
      store_columns<Format>(dx + at, y, live, vector);
    }
  }
  if (partial == nullptr) return;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    if (c > 0) __syncthreads();
    shared[threadIdx.x] = sums[c];
    __syncthreads();
    if (s.row() == 0 && c < live) {
      for (int row = 1; row < s.rows(); ++row) {
        sums[c].bias.add(shared[row * s.quads + int(threadIdx.x)].bias);
        sums[c].A.add(shared[row * s.quads + int(threadIdx.x)].A);
      }
      partial[i64(blockIdx.x / unsigned(s.column_blocks)) * s.columns + column + c] = sums[c];
    }
  }
}

// The blocks' sums added up in their order; one block per head, one thread per channel, K <= 256.
template <class Format>
__device__ __forceinline__ void softplus_totals(const SoftplusSums* partial, typename Format::Bits* dA,
                                                typename Format::Bits* dbias, int token_blocks, int columns,
                                                int K) {
  __shared__ Sum shared[softplus_threads];
  const int channel = int(threadIdx.x), column = int(blockIdx.x) * K + channel;
  SoftplusSums sums = {};
  if (channel < K) {
#pragma unroll 4
    for (int block = 0; block < token_blocks; ++block) {
      const SoftplusSums next = partial[i64(block) * columns + column];
      sums.bias.add(next.bias), sums.A.add(next.A);
    }
    if (dbias != nullptr) dbias[column] = Format::encode(sums.bias.value());
  }
  shared[channel] = sums.A;
  for (int half = softplus_threads / 2; half > 0; half >>= 1) {
    __syncthreads();
    if (channel < half) shared[channel].add(shared[channel + half]);
  }
  if (channel == 0 && dA != nullptr) dA[blockIdx.x] = Format::encode(shared[0].value());
}
