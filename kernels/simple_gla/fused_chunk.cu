// simple_gla.fused_chunk, forward: as simple_gla.chunk (chunk.cu), with the same bits, in one launch and
// without a workspace. Built once per element format and gate: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, o)
// -DGATE=NoGate|HeadGate|TokenGate<Bf16|Fp16|Fp32>. Arguments as in chunk.cu. Grid (x): N H ceil(V/32), 128
// threads. simple_gla_fused_chunk_C serves K <= C.
#include "../scalar/fused_chunk.cuh"

using Element = ELEMENT;
using Gate = GATE;

#define FUSED_KERNEL(channels)                                                                             \
  extern "C" __global__ void __launch_bounds__(128) simple_gla_fused_chunk_##channels(                     \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Gate::Bits* gates,     \
      const float* initial_state, Element::Bits* o, float* final_state, const i64* sequences, float scale, \
      int heads, int key_channels, int value_channels, int vector) {                                       \
    fused_chunk<Element, Gate, channels / 64>(q, k, v, gates, initial_state, o, final_state, sequences,    \
                                              scale,                                                       \
                                              Shape{heads, key_channels, value_channels, vector != 0});    \
  }

FOR_EACH_FUSED_CAPACITY(FUSED_KERNEL)
