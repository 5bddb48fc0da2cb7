// gsa.chunk, backward: what is left beside the functions of chunk.cu. The adjoint of either pass is that of
// gla.chunk (../gla/chunk_backward.cu): S and D = dL/dS are M x C', with (c, d, w) = (v, do, p) for the
// second pass and (k, q, dy) for the first. Built once per pair of formats, as chunk.cu.
//   gsa_softmax_gradient  dy = p (dp - p . dp)
//   gsa_chunk_adjoints_C  D at chunk ends and the gradient of the initial state
//   gsa_chunk_values      dc
//   gsa_chunk_keys        ds, dg, and dw where asked for; fp32
//   gsa_add_slots, gsa_add_gates  ds and dg of both passes together
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
#include "add_passes.cuh"

#define ADJOINT_KERNEL(columns)                                                                            \
  extern "C" __global__ void __launch_bounds__(128) gsa_chunk_adjoints_##columns(                          \
      const Weight::Bits* w, const Element::Bits* d, const Decay::Bits* g, const float* dfinal_state,      \
      float* dinitial_state, char* operands, Weight::Bits* plain, const i64* sequences, float scale,       \
      int heads, int slots, int channels, int vector) {                                                    \
    chunk_state<Element, Decay, columns, Backward, Weight>(                                                \
        w, d, g, dfinal_state, dinitial_state, GivenStates<Element, NeighbourKeys>{{{operands}, {plain}}}, \
        sequences, scale, Shape{heads, slots, channels, vector != 0});                                     \
  }

FOR_EACH_SCAN_WIDTH(ADJOINT_KERNEL)

extern "C" __global__ void __launch_bounds__(128, 3)
    gsa_chunk_values(const Weight::Bits* w, const Element::Bits* s, const Decay::Bits* g,
                     const Element::Bits* d, const char* operands, Element::Bits* dc, const i64* chunks,
                     float scale, int heads, int slots, int channels, int vector) {
  chunk_output<Element, Decay, Backward, Element, Weight>(s, w, d, g, nullptr, operands, dc, chunks, scale,
                                                          Shape{heads, slots, channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128, 2)
    gsa_chunk_keys(const Weight::Bits* w, const Element::Bits* s, const Element::Bits* c,
                   const Decay::Bits* g, const Element::Bits* d, const Weight::Bits* states,
                   const Weight::Bits* adjoints, float* dw, float* ds, float* dg, const i64* chunks,
                   float scale, int heads, int slots, int channels, int vector) {
  chunk_keys<Element, Decay, Forward, Weight>(w, s, c, g, nullptr, d, states, adjoints,
                                              SlotGradients{dw, ds, dg}, nullptr, chunks, scale,
                                              Shape{heads, slots, channels, vector != 0});
}
