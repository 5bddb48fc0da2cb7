// Kernels that operators of the family have alike, for their names' sake as macros of the operator's name.
// ELEMENT and GATE are the formats that the module is built for. A scan is one function per width of its
// blocks.
#pragma once
#include "chunk_state.cuh"

// kernel(columns) for each width of blocks that modules of this format hold.
#if SCAN_WIDTHS(ELEMENT) == 32 + 64
#define FOR_EACH_SCAN_WIDTH(kernel) kernel(32) kernel(64)
#elif SCAN_WIDTHS(ELEMENT) == 64
#define FOR_EACH_SCAN_WIDTH(kernel) kernel(64)
#else
#define FOR_EACH_SCAN_WIDTH(kernel) kernel(32)
#endif

// kernel(suffix, blocks, one_block) for each kernel of outputs that modules of this format hold: of any K and
// V, three blocks on a multiprocessor, and of at most 64, four; with more the compiler spills.
// kernel(suffix, blocks, one_block, columns) likewise, beside a scan of that width.
#if SCAN_WIDTHS(ELEMENT) == 32 + 64
#define FOR_EACH_OUTPUT_SIZE(kernel) kernel(, 3, false) kernel(_64, 4, true)
#define FOR_EACH_OUTPUT_SIZE_BESIDE(kernel, columns) kernel(, 3, false, columns) kernel(_64, 4, true, columns)
#else
#define FOR_EACH_OUTPUT_SIZE(kernel) kernel(, 3, false)
#define FOR_EACH_OUTPUT_SIZE_BESIDE(kernel, columns) kernel(, 3, false, columns)
#endif

// States at chunk starts for the output kernel, and the final state. Arguments as in ../gla/chunk.cu.
#define CHUNK_STATE_KERNEL(operation, columns)                                                             \
  extern "C" __global__ void __launch_bounds__(128, 3) operation##_chunk_state_##columns(                  \
      const ELEMENT::Bits* k, const ELEMENT::Bits* v, const GATE::Bits* g, const float* initial_state,     \
      float* final_state, char* states, const i64* sequences, int heads, int key_channels,                 \
      int value_channels, int vector) {                                                                    \
    chunk_state<ELEMENT, GATE, columns, Forward>(k, v, g, initial_state, final_state,                      \
                                                 OperandStates<ELEMENT>{states}, sequences, 1.0f,          \
                                                 Shape{heads, key_channels, value_channels, vector != 0}); \
  }

// For gradients: S at chunk starts again (scan 0), and D = dL/dS at chunk ends with dinitial_state (scan 1),
// `Reversed` being the pass backward; blocks of y begin with scan `first`. Arguments as in
// ../gla/chunk_backward.cu.
#define CHUNK_SCAN_KERNEL(operation, Reversed, columns)                                                    \
  extern "C" __global__ void __launch_bounds__(128, 3) operation##_chunk_scans_##columns(                  \
      const ELEMENT::Bits* k, const ELEMENT::Bits* v, const GATE::Bits* g, const float* initial_state,     \
      StateOf<ELEMENT>::Type::Bits* states, const ELEMENT::Bits* q, const ELEMENT::Bits* d_o,              \
      const float* dfinal_state, float* dinitial_state, char* adjoint_operands,                            \
      StateOf<ELEMENT>::Type::Bits* adjoints, const i64* sequences, float scale, int heads,                \
      int key_channels, int value_channels, int vector, int first) {                                       \
    const Shape shape{heads, key_channels, value_channels, vector != 0};                                   \
    if (first + int(blockIdx.y) == 0)                                                                      \
      chunk_state<ELEMENT, GATE, columns, Forward>(k, v, g, initial_state, nullptr,                        \
                                                   PlainStates<ELEMENT, NeighbourKeys>{states}, sequences, \
                                                   1.0f, shape);                                           \
    else                                                                                                   \
      chunk_state<ELEMENT, GATE, columns, Reversed>(                                                       \
          q, d_o, g, dfinal_state, dinitial_state,                                                         \
          BothStates<ELEMENT, NeighbourKeys>{{adjoint_operands}, {adjoints}}, sequences, scale, shape);    \
  }
