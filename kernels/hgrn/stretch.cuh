// Neighbouring tokens of one channel: h_t = e^{g_t} h_{t-1} + x_t and its gradients, one thread per channel.
// Loads of a stretch do not wait for each other; a warp reads 32 neighbouring channels.
#pragma once
#include "../device/decay.cuh"
#include "../device/format.cuh"
#include "stretch_layout.h"

// Log decays as stored; decoded in log2 units.
template <class Format>
struct LogDecay : Format {
  static __device__ float decode(typename Format::Bits x) { return Format::decode(x) * log2_e; }
};

// Up to n tokens of tensors [token, D]; tokens from `count` on are not read and leave everything as it is.
template <class Format, int n>
__device__ __forceinline__ void load_tokens(typename Format::Bits (&to)[n], const typename Format::Bits* from,
                                            int count, i64 stride) {
#pragma unroll
  for (int i = 0; i < n; ++i) to[i] = i < count ? from[i * stride] : typename Format::Bits(0);
}

template <class Format, class Gate, int n>
struct Stretch {
  typename Format::Bits x[n];
  typename Gate::Bits g[n];

  __device__ __forceinline__ void load(const typename Format::Bits* x_from, const typename Gate::Bits* g_from,
                                       int count, i64 stride) {
    load_tokens<Format>(x, x_from, count, stride);
    load_tokens<Gate>(g, g_from, count, stride);
  }
  // One rounding of e h + x.
  __device__ __forceinline__ float advance(int i, float h) const {
    return fused(decay_factor(Gate::decode(g[i])), h, Format::decode(x[i]));
  }
};

// What a thread works on: a sequence or chunk, and a channel of it.
struct Place {
  int part, channel;

  static __device__ Place of(int D) {
    const int per_row = (D + int(blockDim.x) - 1) / int(blockDim.x);
    return {int(blockIdx.x) / per_row, int(blockIdx.x) % per_row * int(blockDim.x) + int(threadIdx.x)};
  }
};

// The gradients of one stretch, in reversed time: G arrives from later tokens, and is left for earlier ones,
// e^g of the first token applied. `h` is the state before the stretch. Products and sums round one by one, so
// that a run resumed from the gradient of its state has the same bits.
template <class Format, class Gate, int n>
__device__ __forceinline__ float stretch_gradients(const Stretch<Format, Gate, n>& s,
                                                   const typename Format::Bits (&d_o)[n], float h, float G,
                                                   int count, typename Format::Bits* dx,
                                                   typename Gate::Bits* dg, i64 stride) {
  float decayed[n], e[n];  // e^{g_t} h_{t-1}
#pragma unroll
  for (int i = 0; i < n; ++i) {
    e[i] = decay_factor(Gate::decode(s.g[i]));
    decayed[i] = e[i] * h;
    h = fused(e[i], h, Format::decode(s.x[i]));
  }
#pragma unroll
  for (int i = n - 1; i >= 0; --i) {
    if (i < count) {
      G = G + Format::decode(d_o[i]);
      dx[i * stride] = Format::encode(G);
      dg[i * stride] = Gate::encode(decayed[i] * G);
      G = e[i] * G;
    }
  }
  return G;
}
