// rwkv7.chunk, in chunks of 64 tokens of tiles of 16: what comes before a scan forward, or of gradients both
// scans (chunk_prepare.cuh). Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (r, k, a, b)
// -DGATE=Bf16|Fp16|Fp32 (w).
//   r, a, b, k, w [token, heads, K], w log decays <= 0; prepared, prepared_back (or null: gradients only):
//   workspaces [chunk][heads] of PreparedLayout; chunks [chunk][2]: first token, tokens
// Grids (x): chunks heads, 128 threads. `vector`: rows may be loaded 16 bytes at a time.
#include "chunk_prepare.cuh"

using Element = ELEMENT;
using Decay = GATE;

// On a multiprocessor of sm_90: as many as registers allow where operands are bf16, with hardly any spilled.
constexpr int blocks_at_once = OperandOf<Element>::Type::block_bytes > 512 ? 1 : 3;

#define PREPARE_KERNEL(name, side, back)                                                                     \
  extern "C" __global__ void __launch_bounds__(128, blocks_at_once)                                          \
      name(const Element::Bits* later, const Element::Bits* b, const Element::Bits* k, const Decay::Bits* w, \
           char* prepared, char* prepared_back, const i64* chunks, float scale, int heads, int key_channels, \
           int vector) {                                                                                     \
    general::prepare<Element, Decay, general::side, back>(later, b, k, w, prepared, prepared_back, chunks,   \
                                                          scale, heads, key_channels, vector != 0);          \
  }

PREPARE_KERNEL(rwkv7_chunk_readers, Readers, false)
PREPARE_KERNEL(rwkv7_chunk_queries, Queries, false)
PREPARE_KERNEL(rwkv7_chunk_readers_back, Readers, true)
PREPARE_KERNEL(rwkv7_chunk_queries_back, Queries, true)
