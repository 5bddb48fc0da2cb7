// short_conv.fused: o_t = sum_j w_j (.) S_{t,j}, S_t the last K inputs, and its gradients. The history of a
// sequence is its initial state's K columns followed by its inputs, so that S_t is columns t .. t + K - 1;
// one thread per chunk of 64 tokens and channel, everything in fp32. Built once per format:
// -DELEMENT=Bf16|Fp16|Fp32 (x, o, weight and their gradients).
//   x, o, do, dx [token, D]; weight, dweight [D, K]; initial_state (or null), final_state, dfinal_state (or
//   null), dinitial_state (or null) [N, D, K] fp32; sums [chunk][D][K] fp32 sequences [N][3]: first token,
//   tokens, first chunk; chunks [.][4]: first token of the sequence, its tokens, its number, the chunk's
//   first token counted from there
// Grid (x): parts ceil(D/128) of 128 threads; a part is a chunk, or a sequence where states are made.
#include "../rwkv6/bonus_total.cuh"

using Element = ELEMENT;
constexpr int chunk = 64;  // fused_plan.cpp says the same

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
  __device__ i64 state(int column) const { return (number * D + channel) * K + column; }
  __device__ i64 weight(int column) const { return i64(channel) * K + column; }

  __device__ float history(const Element::Bits* x, const float* initial_state, i64 column) const {
    if (column >= K) return Element::decode(x[token(column - K)]);
    return initial_state != nullptr ? initial_state[state(int(column))] : 0.0f;
  }
  // Latest token first, so that a run resumed from the gradient of its state has the same bits.
  __device__ float history_gradient(const Element::Bits* w, const Element::Bits* d_o,
                                    const float* dfinal_state, i64 column) const {
    float G = column >= tokens && dfinal_state != nullptr ? dfinal_state[state(int(column - tokens))] : 0.0f;
    const i64 last = min(column, tokens) - 1, earliest = max(column - K, i64(0));
#pragma unroll 1
    for (i64 t = last; t >= earliest; --t)
      G = fused(Element::decode(w[weight(int(column - 1 - t))]), Element::decode(d_o[token(t)]), G);
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
  for (i64 t = c.begin; t < c.end; ++t) {
    float sum = 0.0f;
#pragma unroll 1
    for (int j = 0; j < K; ++j)
      sum = fused(Element::decode(weight[c.sequence.weight(j)]),
                  c.sequence.history(x, initial_state, t + 1 + j), sum);
    o[c.sequence.token(t)] = Element::encode(sum);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    short_conv_final_state(const Element::Bits* x, const float* initial_state, float* final_state,
                           const i64* sequences, int D, int K) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const i64* row = sequences + 3 * i64(place.part);
  const Sequence s{row[0], row[1], place.part, place.channel, D, K};
  for (int j = 0; j < K; ++j) final_state[s.state(j)] = s.history(x, initial_state, s.tokens + j);
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
  for (i64 t = c.begin; t < c.end; ++t)
    dx[s.token(t)] = Element::encode(s.history_gradient(weight, d_o, dfinal_state, t + K));
#pragma unroll 1
  for (int j = 0; j < K; ++j) {
    float sum = 0.0f;
    for (i64 t = c.begin; t < c.end; ++t)
      sum = fused(Element::decode(d_o[s.token(t)]), s.history(x, initial_state, t + 1 + j), sum);
    sums[(i64(place.part) * D + place.channel) * K + j] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(128)
    short_conv_state_gradients(const Element::Bits* weight, const Element::Bits* d_o,
                               const float* dfinal_state, float* dinitial_state, const i64* sequences, int D,
                               int K) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const i64* row = sequences + 3 * i64(place.part);
  const Sequence s{row[0], row[1], place.part, place.channel, D, K};
  for (int j = 0; j < K; ++j) dinitial_state[s.state(j)] = s.history_gradient(weight, d_o, dfinal_state, j);
}

extern "C" __global__ void __launch_bounds__(128)
    short_conv_total(const float* sums, Element::Bits* dweight, i64 chunks, int D, int K) {
  bonus_total<Element>(sums, dweight, chunks, D * K);
}
