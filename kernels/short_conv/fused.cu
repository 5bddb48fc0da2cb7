// short_conv.fused: o_t = sum_j w_j (.) S_{t,j}, S_t the last K inputs, and its gradients. The history of a
// sequence is its initial state's K columns followed by its inputs, so that S_t is columns t .. t + K - 1;
// one thread per chunk of 64 tokens and channel, everything in fp32. Built once per format:
// -DELEMENT=Bf16|Fp16|Fp32 (x, o, weight and their gradients).
//   x, o, do, dx [token, D]; weight, dweight [D, K]; initial_state (or null), final_state, dfinal_state (or
//   null), dinitial_state (or null) [N, D, K] fp32; sums [chunk][D][K] fp32; sequences [N][3]: first token,
//   tokens, first chunk; chunks [.][4]: first token of the sequence, its tokens, its number, the chunk's
//   first token counted from there
// K is 1 at least, and no chunk is empty. Grid (x): parts ceil(D/128) of 128 threads; a part is a chunk, or a
// sequence where states are made.
#include "../rwkv6/bonus_total.cuh"
#include "fused_layout.h"

using Element = ELEMENT;
constexpr int chunk = assay::short_conv::chunk_tokens;

// The channel that a thread works on, and the chunk or sequence.
struct Place {
  int part, channel;

  static __device__ Place of(int D) {
    const int per_row = (D + int(blockDim.x) - 1) / int(blockDim.x);
    return {int(blockIdx.x) / per_row, int(blockIdx.x) % per_row * int(blockDim.x) + int(threadIdx.x)};
  }
};

// One sequence and channel. Tokens are counted from 0, columns of the history as above.
struct Sequence {
  i64 first, tokens, number;
  int channel, D, K;

  __device__ i64 token(i64 t) const { return (first + t) * D + channel; }
  __device__ i64 state(i64 column) const { return (number * D + channel) * K + column; }
  __device__ i64 weight(i64 column) const { return i64(channel) * K + column; }

  __device__ float history(const Element::Bits* x, const float* initial_state, i64 column) const {
    if (column >= K) return Element::decode(x[token(column - K)]);
    return initial_state != nullptr ? initial_state[state(column)] : 0.0f;
  }
  // What reaches a column from the final state, and from tokens down to `earliest`, at least one; latest
  // token first, so that a run resumed from the gradient of its state has the same bits.
  __device__ float from_final_state(const float* dfinal_state, i64 column) const {
    return column >= tokens && dfinal_state != nullptr ? dfinal_state[state(column - tokens)] : 0.0f;
  }
  __device__ float from_tokens(const Element::Bits* w, const Element::Bits* d_o, i64 column, i64 earliest,
                               float G) const {
    i64 t = min(column, tokens) - 1;
#pragma unroll 1
    do {
      G = fused(Element::decode(w[weight(column - 1 - t)]), Element::decode(d_o[token(t)]), G);
    } while (--t >= earliest);
    return G;
  }
};

struct Chunk {
  Sequence sequence;
  i64 begin, end;

  static __device__ Chunk of(const i64* chunks, const Place& place, int D, int K) {
    const i64* row = chunks + 4 * i64(place.part);
    return {{row[0], row[1], row[2], place.channel, D, K}, row[3], min(row[3] + chunk, row[1])};
  }
};

extern "C" __global__ void __launch_bounds__(128)
    short_conv_outputs(const Element::Bits* x, const Element::Bits* weight, const float* initial_state,
                       Element::Bits* o, const i64* chunks, int D, int K) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const Chunk c = Chunk::of(chunks, place, D, K);
  i64 t = c.begin;
#pragma unroll 1
  do {
    float sum = 0.0f;
    int j = 0;
#pragma unroll 1
    do {
      sum = fused(Element::decode(weight[c.sequence.weight(j)]),
                  c.sequence.history(x, initial_state, t + 1 + j), sum);
    } while (++j < K);
    o[c.sequence.token(t)] = Element::encode(sum);
  } while (++t < c.end);
}

extern "C" __global__ void __launch_bounds__(128)
    short_conv_final_state(const Element::Bits* x, const float* initial_state, float* final_state,
                           const i64* sequences, int D, int K) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const i64* row = sequences + 3 * i64(place.part);
  const Sequence s{row[0], row[1], place.part, place.channel, D, K};
  int j = 0;
  do {
    final_state[s.state(j)] = s.history(x, initial_state, s.tokens + j);
  } while (++j < K);
}

// dx, and what the chunk adds to dweight.
extern "C" __global__ void __launch_bounds__(128)
    short_conv_gradients(const Element::Bits* x, const Element::Bits* weight, const float* initial_state,
                         const Element::Bits* d_o, const float* dfinal_state, Element::Bits* dx, float* sums,
                         const i64* chunks, int D, int K) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const Chunk c = Chunk::of(chunks, place, D, K);
  const Sequence& s = c.sequence;
  i64 token = c.begin;
#pragma unroll 1
  do {
    const float G = s.from_final_state(dfinal_state, token + K);
    dx[s.token(token)] = Element::encode(s.from_tokens(weight, d_o, token + K, token, G));
  } while (++token < c.end);
  int j = 0;
#pragma unroll 1
  do {
    float sum = 0.0f;
    i64 t = c.begin;
    do {
      sum = fused(Element::decode(d_o[s.token(t)]), s.history(x, initial_state, t + 1 + j), sum);
    } while (++t < c.end);
    sums[(i64(place.part) * D + place.channel) * K + j] = sum;
  } while (++j < K);
}

extern "C" __global__ void __launch_bounds__(128)
    short_conv_state_gradients(const Element::Bits* weight, const Element::Bits* d_o,
                               const float* dfinal_state, float* dinitial_state, const i64* sequences, int D,
                               int K) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const i64* row = sequences + 3 * i64(place.part);
  const Sequence s{row[0], row[1], place.part, place.channel, D, K};
  int j = 0;
  do {
    const float G = s.from_final_state(dfinal_state, j);
    dinitial_state[s.state(j)] = min(i64(j), s.tokens) > 0 ? s.from_tokens(weight, d_o, j, 0, G) : G;
  } while (++j < K);
}

extern "C" __global__ void __launch_bounds__(128)
    short_conv_total(const float* sums, Element::Bits* dweight, i64 chunks, int D, int K) {
  bonus_total<Element>(sums, dweight, chunks, D * K);
}
