// rwkv7.chunk, backward: two scans, chunk after chunk (chunk_scan.cuh), each from what chunk_prepare.cu left
// for its direction:
//   states    what every token reads, S_{t-1}^T a_t; S at every chunk's start
//   adjoints  dv; what every token pulls, G_t^T b_t; D = dL/dS at every chunk's end, last chunk first
// What is left, dr, dw, dk, da and db, are those of fused_recurrent_backward.cu, each chunk as a sequence of
// its own that starts from S and ends in D. Built once per element format, -DELEMENT=Bf16|Fp16|Fp32 (v, do,
// dv).
//   v, do, dv [token, heads, V]; prepared: workspace [chunk][heads] of PreparedLayout; reads, pulls [token,
//   heads, V] fp32; states, adjoints [chunk, heads, K, V] fp32
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, heads, K, V] fp32
//   sequences [N][3]: first token, tokens, first chunk
// Grids (x): N heads ceil(V/64), 128 threads; *_C serves K <= C.
#include "chunk_scan.cuh"

using Element = ELEMENT;

#define SCAN_KERNELS(capacity)                                                                               \
  extern "C" __global__ void __launch_bounds__(128, 1) rwkv7_chunk_states_##capacity(                        \
      const Element::Bits* v, const char* prepared, const float* initial_state, float* reads, float* states, \
      const i64* sequences, int heads, int key_channels, int value_channels, int vector) {                   \
    rule::for_sizes<Element, capacity, general::PreparedLayout>(                                             \
        key_channels, value_channels, [&](auto sizes) {                                                      \
          general::scan<Element, capacity, general::ScanStates, decltype(sizes)::whole>(                     \
              v, prepared, initial_state, nullptr, reads, states, nullptr, sequences, 1.0f, heads,           \
              key_channels, value_channels, vector != 0);                                                    \
        });                                                                                                  \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128, 1) rwkv7_chunk_adjoints_##capacity(                      \
      const Element::Bits* d_o, const char* prepared, const float* dfinal_state, Element::Bits* dv,          \
      float* pulls, float* adjoints, float* dinitial_state, const i64* sequences, int heads,                 \
      int key_channels, int value_channels, int vector) {                                                    \
    rule::for_sizes<Element, capacity, general::PreparedLayout>(                                             \
        key_channels, value_channels, [&](auto sizes) {                                                      \
          general::scan<Element, capacity, general::ScanBack, decltype(sizes)::whole>(                       \
              d_o, prepared, dfinal_state, dv, pulls, adjoints, dinitial_state, sequences, 1.0f, heads,      \
              key_channels, value_channels, vector != 0);                                                    \
        });                                                                                                  \
  }

FOR_EACH_RULE_CAPACITY(SCAN_KERNELS)
