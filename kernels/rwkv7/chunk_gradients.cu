// rwkv7.chunk, backward, after both scans (chunk_backward.cu): dr, dw, dk, da and db, chunk by chunk on
// tensor cores. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, a, b, do and their
// gradients) -DGATE=Bf16|Fp16|Fp32 (w, dw).
//   r, w, k, a, b, dr, dw, dk, da, db [token, heads, K]; v, do [token, heads, V]
//   reads, pulls, states, adjoints: as chunk_backward.cu left them; chunks [chunk][2]: first token, tokens
// Grid (x): chunks heads ceil(K/C), C = GradientLayout::keys, 8 C threads. `vector`: K and V are multiples of
// 8.
#include "chunk_gradients.cuh"

using Element = ELEMENT;
using Decay = GATE;
using KeptBits = StateOf<Element>::Type::Bits;
using Memory = general::GradientShared<Element, Decay>;

// On a multiprocessor of sm_90.
constexpr int blocks_at_once = sizeof(KeptBits) == 2 ? 2 : 1;

extern "C" __global__ void __launch_bounds__(Memory::threads, blocks_at_once)
    rwkv7_chunk_gradients(const Element::Bits* r, const Decay::Bits* w, const Element::Bits* k,
                          const Element::Bits* v, const Element::Bits* a, const Element::Bits* b,
                          const Element::Bits* d_o, const KeptBits* reads, const KeptBits* pulls,
                          const KeptBits* states, const KeptBits* adjoints, Element::Bits* dr,
                          Decay::Bits* dw, Element::Bits* dk, Element::Bits* da, Element::Bits* db,
                          const i64* chunks, float scale, int heads, int key_channels, int value_channels,
                          int vector) {
  extern __shared__ __align__(16) char shared[];
  constexpr int keys = Memory::layout.keys;
  const Shape shape{heads, key_channels, value_channels, vector != 0};
  const int key_blocks = (key_channels + keys - 1) / keys, block = int(blockIdx.x) / key_blocks,
            key = int(blockIdx.x) % key_blocks * keys, head = block % heads, chunk = block / heads;
  const int rows = int(chunks[2 * i64(chunk) + 1]);
  const i64 token = chunks[2 * i64(chunk)] * heads + head, at = token * key_channels,
            value = token * value_channels,
            state = i64(block) * 256 * shape.key_groups() * shape.value_groups(),
            key_stride = i64(heads) * key_channels;
  const general::GradientInputs<Element, Decay> in{r + at,
                                                   k + at,
                                                   a + at,
                                                   b + at,
                                                   v + value,
                                                   d_o + value,
                                                   w + at,
                                                   reads + value,
                                                   pulls + value,
                                                   states + state,
                                                   adjoints + state,
                                                   key_stride,
                                                   i64(heads) * value_channels,
                                                   rows,
                                                   shape};
  const KeyPlace place{at + key, key_stride, rows, key_channels - key, shape.vector};
  general::chunk_gradients<Element, Decay>(in, key, {{dr, dk, da, db, dw}, place}, scale, shared);
}
