// gsa.chunk: both passes in chunks of 64 tokens on tensor cores, from the pieces of gla.chunk. The first pass
// is a recurrence of M x K, the transpose Hk^T, with s for keys and k for values; what it gives, y, is what a
// gradient of queries is in gla. The second is gla.chunk with p for queries and s for keys. Built once per
// pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, s, o) -DGATE=Bf16|Fp16|Fp32 (g). p and dy are bf16 for
// bf16, else fp32: what is below fp16's range counts beside large states.
//   gsa_chunk_states_C    states S_t = diag(e^{g_t}) S_{t-1} + s_t c_t^T at chunk starts, and the final one,
//                         of both passes at once (neither needs the other); C of their columns per block
//   gsa_chunk_readout     y = scale S q; where y is null (at most 64 slots) p = softmax(y), and where it is
//                         asked for the second pass's o
//   gsa_softmax           p from y, for more slots
//   gsa_chunk_output      o = scale S^T w: (c, w, o) = (v, p, o), backward (k, dy, dq)
//   s, g [token, H, M]; c, q, o [token, H, C']; y [token, H, M] fp32; states fp32, of the first pass
//   [N, H, C', M], of the second [N, H, M, C']
//   operands, plain: workspaces as in ../channel/chunk_state.cuh; sequences, chunks, `vector` as in
//   ../gla/chunk.cu
// Grids: states (N H ceil(M/64) ceil(C'/C), 2) of the larger C', readout chunks H ceil(M/64), output chunks
// H, softmax ceil(rows/4); 128 threads.
#include "../channel/chunk_kernels.cuh"
#include "../channel/chunk_output.cuh"
#include "slot_gradients.cuh"
#include "slots.cuh"

using Element = ELEMENT;
using Decay = GATE;
using Weight = StateOf<Element>::Type;

extern "C" __global__ void __launch_bounds__(128)
    gsa_softmax(const float* y, Weight::Bits* p, i64 rows, int slots) {
  softmax<Weight>(y, p, rows, slots);
}

#define STATES_KERNEL(columns)                                                                               \
  extern "C" __global__ void __launch_bounds__(128, 3) gsa_chunk_states_##columns(                           \
      const Element::Bits* s, const Decay::Bits* g, const Element::Bits* k, const float* initial_k,          \
      float* final_k, char* operands_k, Weight::Bits* plain_k, const Element::Bits* v,                       \
      const float* initial_v, float* final_v, char* operands_v, Weight::Bits* plain_v, const i64* sequences, \
      int blocks_k, int blocks_v, int heads, int slots, int key_channels, int value_channels, int vector_k,  \
      int vector_v) {                                                                                        \
    const bool keys = blockIdx.y == 0;                                                                       \
    if (int(blockIdx.x) >= (keys ? blocks_k : blocks_v)) return;                                             \
    chunk_state<Element, Decay, columns, Forward>(                                                           \
        s, keys ? k : v, g, keys ? initial_k : initial_v, keys ? final_k : final_v,                          \
        GivenStates<Element, NeighbourKeys>{{{keys ? operands_k : operands_v}, {keys ? plain_k : plain_v}}}, \
        sequences, 1.0f,                                                                                     \
        Shape{heads, slots, keys ? key_channels : value_channels, (keys ? vector_k : vector_v) != 0}, keys); \
  }

FOR_EACH_SCAN_WIDTH(STATES_KERNEL)

extern "C" __global__ void __launch_bounds__(128, 3)
    gsa_chunk_readout(const Element::Bits* s, const Element::Bits* k, const Decay::Bits* g,
                      const Element::Bits* q, const Weight::Bits* plain, float* y, Weight::Bits* p,
                      const Element::Bits* v, const char* states_v, Element::Bits* o, const i64* chunks,
                      float scale, int heads, int slots, int channels, int vector, int value_channels,
                      int vector_v) {
  chunk_keys<Element, Decay, Forward>(nullptr, s, k, g, nullptr, q, plain, nullptr,
                                      SlotReadout<Weight>{{y}, p}, nullptr, chunks, scale,
                                      Shape{heads, slots, channels, vector != 0});
  if (o == nullptr) return;
  __syncthreads();  // p is there, and shared memory free
  chunk_output<Element, Decay, Forward, Weight>(p, s, v, g, nullptr, states_v, o, chunks, 1.0f,
                                                Shape{heads, slots, value_channels, vector_v != 0});
}

extern "C" __global__ void __launch_bounds__(128, 3)
    gsa_chunk_output(const Weight::Bits* w, const Element::Bits* s, const Element::Bits* c,
                     const Decay::Bits* g, const char* operands, Element::Bits* o, const i64* chunks,
                     float scale, int heads, int slots, int channels, int vector) {
  chunk_output<Element, Decay, Forward, Weight>(w, s, c, g, nullptr, operands, o, chunks, scale,
                                                Shape{heads, slots, channels, vector != 0});
}
