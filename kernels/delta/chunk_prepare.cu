// delta_rule, gated_delta_rule and kda, chunk, in chunks of 64 tokens of tiles of 16: what comes before a
// scan forward, or of gradients both scans (chunk_prepare.cuh). Built once per element format and gate, as
// fused_recurrent.cu.
//   q, k [token, key heads, K]; beta [token, heads] or null: 1; gates: TokenGate: g [token, heads] log decays
//   <= 0; ChannelGate: [token, heads, K] or null: zeros; NoGate: null
//   prepared, prepared_back (or null: gradients only): workspaces [chunk][heads] of PreparedLayout
//   chunks [chunk][2]: first token, tokens
// Grid (x): chunks heads, 128 threads. `vector`: rows of q, k and g may be loaded 16 bytes at a time.
#include "chunk_prepare.cuh"

using Element = ELEMENT;
using Decay = GATE;

// On a multiprocessor of sm_90: as many as registers allow where operands are bf16, without or with hardly
// any spilled.
constexpr int blocks_at_once = OperandOf<Element>::Type::block_bytes > 512 ? 1
                               : Decay::width == GateWidth::channel        ? 3
                                                                           : 4;

#define PREPARE_KERNEL(name, back)                                                                        \
  extern "C" __global__ void __launch_bounds__(128, blocks_at_once)                                       \
      name(const Element::Bits* q, const Element::Bits* k, const Element::Bits* beta,                     \
           const Decay::Bits* gates, char* prepared, char* prepared_back, const i64* chunks, float scale, \
           int key_heads, int heads, int key_channels, int vector) {                                      \
    rule::prepare<Element, Decay, back>(q, k, beta, gates, prepared, prepared_back, chunks, scale,        \
                                        key_heads, heads, key_channels, vector != 0);                     \
  }

PREPARE_KERNEL(delta_chunk_prepare, false)
PREPARE_KERNEL(delta_chunk_prepare_back, true)
