// delta_rule, gated_delta_rule and kda, chunk, backward, after both scans (chunk_backward.cu): dq, dk and dg,
// chunk by chunk on tensor cores. Built once per element format and gate, as fused_recurrent.cu.
//   q, k [token, key heads, K]; do [token, heads, V]; gates as in chunk_prepare.cu; dg as gates
//   updates, pulls (dr), states, adjoints: as chunk_backward.cu left them
//   dq, dk [token, key heads, K]; or null, where value heads share keys: then dqs, dks [token, heads, K] fp32
//   chunks [chunk][2]: first token, tokens
// Grid (x): chunks heads, of gates per key channel ceil(K/64) times that; 128 threads. `vector`: K and V are
// multiples of 8.
#include "channel_gradients.cuh"
#include "token_gradients.cuh"

using Element = ELEMENT;
using Decay = GATE;
using KeptBits = StateOf<Element>::Type::Bits;

// On a multiprocessor of sm_90; without decays fewer registers do.
constexpr int blocks_at_once = sizeof(Element::Bits) == 2 && !has_decay<Decay> ? 3 : 2;

// What a block's gradients are made of, and where they go.
struct Tensors {
  const Element::Bits *q, *k, *d_o;
  const KeptBits *updates, *pulls, *states, *adjoints;
  Element::Bits* dq;
  float* dqs;
  Element::Bits* dk;
  float* dks;
};

template <class Gate>
__device__ __forceinline__ void gradients(const Tensors& x, const typename Gate::Bits* gates,
                                          typename Gate::Bits* dg, const i64* chunks, float scale,
                                          int key_heads, const Shape& shape) {
  extern __shared__ __align__(16) char shared[];
  constexpr bool by_channel = Gate::width == GateWidth::channel;
  const int key_blocks = by_channel ? (shape.key_channels + 63) / 64 : 1, heads = shape.heads,
            block = int(blockIdx.x) / key_blocks, head = block % heads, chunk = block / heads;
  const i64 first = chunks[2 * i64(chunk)], token = first * heads + head,
            key = (first * key_heads + head / (heads / key_heads)) * shape.key_channels,
            value = token * shape.value_channels,
            state = i64(block) * 256 * shape.key_groups() * shape.value_groups();
  const int rows = int(chunks[2 * i64(chunk) + 1]);
  const rule::GradientInputs<Element> in{x.q + key,
                                         x.k + key,
                                         x.d_o + value,
                                         x.updates + value,
                                         x.pulls + value,
                                         x.states + state,
                                         x.adjoints + state,
                                         i64(key_heads) * shape.key_channels,
                                         i64(heads) * shape.value_channels,
                                         rows,
                                         shape};
  if constexpr (by_channel) {
    const int key_begin = int(blockIdx.x) % key_blocks * 64;
    const i64 at = token * shape.key_channels;
    const KeyPlace place{at + key_begin, i64(heads) * shape.key_channels, rows,
                         shape.key_channels - key_begin, shape.vector};
    rule::channel_gradients<Element, typename Gate::Stored>(
        in, gates == nullptr ? nullptr : gates + at, key_begin, {{x.dq, x.dk, dg}, x.dqs, x.dks, place},
        scale, shared);
  } else {
    const int row = 16 * (int(threadIdx.x) >> 5);
    const i64 to = (token + i64(row) * heads) * shape.key_channels;
    rule::token_gradients<Element, Gate>(in, gates, {x.dq, x.dqs, to, shape, rows - row},
                                         {x.dk, x.dks, to, shape, rows - row}, dg, first, head, scale,
                                         shared);
  }
}

extern "C" __global__ void __launch_bounds__(128, blocks_at_once)
    delta_chunk_gradients(const Element::Bits* q, const Element::Bits* k, const Decay::Bits* gates,
                          const Element::Bits* d_o, const KeptBits* updates, const KeptBits* pulls,
                          const KeptBits* states, const KeptBits* adjoints, Element::Bits* dq, float* dqs,
                          Element::Bits* dk, float* dks, Decay::Bits* dg, const i64* chunks, float scale,
                          int key_heads, int heads, int key_channels, int value_channels, int vector) {
  gradients<Decay>({q, k, d_o, updates, pulls, states, adjoints, dq, dqs, dk, dks}, gates, dg, chunks, scale,
                   key_heads, {heads, key_channels, value_channels, vector != 0});
}
