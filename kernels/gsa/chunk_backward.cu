// gsa.chunk, backward: what is left beside the functions of chunk.cu. The adjoint of either pass is that of
// gla.chunk (../gla/chunk_backward.cu): S and D = dL/dS are M x C', with (c, d, w) = (v, do, p) for the
// second pass and (k, q, dy) for the first. Built once per pair of formats, as chunk.cu.
//   gsa_chunk_adjoints_C  D at chunk ends and the gradient of the initial state; `turned`: states outside are
//                         [N, H, C', M]; in other blocks dq of the pass (c = k) and dv of the second one,
//                         by gsa_chunk_adjoints_C_64 for M, C' <= 64, of both passes
//   gsa_chunk_values      dc
//   gsa_chunk_second_keys halves of ds and dg, fp32, a lane's together; dp, where dp is null dy = p (dp - p .
//                         dp): at most 64 slots
//   gsa_softmax_gradient  dy from dp, for more slots
//   gsa_chunk_first_keys  ds and dg, with those halves
#include "../channel/chunk_kernels.cuh"
#include "../channel/chunk_output.cuh"
#include "slot_gradients.cuh"
#include "slots.cuh"

using Element = ELEMENT;
using Decay = GATE;
using Weight = StateOf<Element>::Type;

extern "C" __global__ void __launch_bounds__(128)
    gsa_softmax_gradient(const Weight::Bits* p, const float* dp, Weight::Bits* dy, i64 rows, int slots) {
  softmax_gradient<Weight>(p, dp, dy, rows, slots);
}

#define ADJOINT_KERNEL(suffix, blocks, one_block, columns)                                                   \
  extern "C" __global__ void __launch_bounds__(128, blocks) gsa_chunk_adjoints_##columns##suffix(            \
      const Weight::Bits* w, const Element::Bits* d, const Decay::Bits* g, const float* dfinal_state,        \
      float* dinitial_state, char* operands, Weight::Bits* plain, const i64* sequences, float scale,         \
      const Element::Bits* s, const Element::Bits* k, const char* states_k, Element::Bits* dq,               \
      const Weight::Bits* p, const Element::Bits* d_o, const char* adjoints_v, Element::Bits* dv,            \
      const i64* chunks, int scan_blocks, int output_blocks, int heads, int slots, int channels, int vector, \
      int turned, int value_channels, int vector_v) {                                                        \
    const Shape shape{heads, slots, channels, vector != 0};                                                  \
    const int block = int(blockIdx.x) - scan_blocks;                                                         \
    if (block < 0)                                                                                           \
      chunk_state<Element, Decay, columns, Backward, Weight, blocks>(                                        \
          w, d, g, dfinal_state, dinitial_state, BothStates<Element, NeighbourKeys>{{operands}, {plain}},    \
          sequences, scale, shape, turned != 0);                                                             \
    else if (block < output_blocks)                                                                          \
      chunk_output<Element, Decay, Forward, Weight, Element, one_block>(w, s, k, g, nullptr, states_k, dq,   \
                                                                        chunks, scale, shape, block);        \
    else                                                                                                     \
      chunk_output<Element, Decay, Backward, Element, Weight, one_block>(                                    \
          s, p, d_o, g, nullptr, adjoints_v, dv, chunks, 1.0f,                                               \
          Shape{heads, slots, value_channels, vector_v != 0}, block - output_blocks);                        \
  }
#define ADJOINT_KERNELS(columns) FOR_EACH_OUTPUT_SIZE_BESIDE(ADJOINT_KERNEL, columns)
FOR_EACH_SCAN_WIDTH(ADJOINT_KERNELS)

#define VALUES_KERNEL(suffix, blocks, one_block)                                                       \
  extern "C" __global__ void __launch_bounds__(128, blocks) gsa_chunk_values##suffix(                  \
      const Weight::Bits* w, const Element::Bits* s, const Decay::Bits* g, const Element::Bits* d,     \
      const char* operands, Element::Bits* dc, const i64* chunks, float scale, int heads, int slots,   \
      int channels, int vector) {                                                                      \
    chunk_output<Element, Decay, Backward, Element, Weight, one_block>(                                \
        s, w, d, g, nullptr, operands, dc, chunks, scale, Shape{heads, slots, channels, vector != 0}); \
  }
FOR_EACH_OUTPUT_SIZE(VALUES_KERNEL)

extern "C" __global__ void __launch_bounds__(key_threads<Element, Forward>, 2)
    gsa_chunk_second_keys(const Weight::Bits* p, const Element::Bits* s, const Element::Bits* v,
                          const Decay::Bits* g, const Element::Bits* d_o, const Weight::Bits* states,
                          const Weight::Bits* adjoints, float* dp, Weight::Bits* dy, float4* halves,
                          const i64* chunks, float scale, int heads, int slots, int channels, int vector) {
  chunk_keys<Element, Decay, Forward, Weight>(
      p, s, v, g, nullptr, d_o, states, adjoints,
      SecondPass<Weight, key_threads<Element, Forward>>{{dp}, dy, {halves}}, nullptr, chunks, scale,
      Shape{heads, slots, channels, vector != 0});
}
extern "C" __global__ void __launch_bounds__(key_threads<Element, Forward>, 2)
    gsa_chunk_first_keys(const Weight::Bits* dy, const Element::Bits* s, const Element::Bits* k,
                         const Decay::Bits* g, const Element::Bits* q, const Weight::Bits* states,
                         const Weight::Bits* adjoints, float4* halves, Element::Bits* ds, Decay::Bits* dg,
                         const i64* chunks, float scale, int heads, int slots, int channels, int vector) {
  chunk_keys<Element, Decay, Forward, Weight>(
      dy, s, k, g, nullptr, q, states, adjoints,
      FirstPass<Element, Decay, key_threads<Element, Forward>>{{halves}, ds, dg}, nullptr, chunks, scale,
      Shape{heads, slots, channels, vector != 0});
}
