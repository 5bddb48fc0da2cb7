// rwkv7.chunk, backward: two scans at once, chunk after chunk (chunk_scan.cuh), from what chunk_prepare.cu
// left; chunk_gradients.cu makes the rest of what they keep:
//   forward   what every token reads, S_{t-1}^T a_t, S at every chunk's start
//   backward  dv; what every token pulls, G_t^T b_t; D = dL/dS at every chunk's end, dinitial_state, last
//             chunk first
// Built once per element format, -DELEMENT=Bf16|Fp16|Fp32 (v, do, dv).
//   v, do, dv [token, heads, V]; prepared, prepared_back: workspaces [chunk][heads] of PreparedLayout
//   reads, pulls [token, heads, V]; states, adjoints [chunk][heads][V][K], V and K padded to multiples of 16:
//   all of bf16 (fp16, fp32: fp32)
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, heads, K, V] fp32
//   sequences [N][3]: first token, tokens, first chunk
// Grids: N heads ceil(V/64), 2; 128 threads; *_C serves K <= C.
#include "chunk_scan.cuh"

using Element = ELEMENT;
using KeptBits = general::KeptBits<Element>;

#define SCANS_KERNEL(capacity)                                                                             \
  extern "C" __global__ void __launch_bounds__(128, 1) rwkv7_chunk_scans_##capacity(                       \
      const Element::Bits* v, const Element::Bits* d_o, const char* prepared, const char* prepared_back,   \
      const float* initial_state, const float* dfinal_state, KeptBits* reads, KeptBits* states,            \
      Element::Bits* dv, KeptBits* pulls, KeptBits* adjoints, float* dinitial_state, const i64* sequences, \
      int heads, int key_channels, int value_channels, int vector) {                                       \
    rule::for_sizes<Element, capacity, general::PreparedLayout>(                                           \
        key_channels, value_channels, [&](auto sizes) {                                                    \
          if (blockIdx.y == 0)                                                                             \
            general::scan<Element, capacity, general::ScanStates, decltype(sizes)::whole>(                 \
                v, prepared, initial_state, nullptr, reads, states, nullptr, sequences, 1.0f, heads,       \
                key_channels, value_channels, vector != 0);                                                \
          else                                                                                             \
            general::scan<Element, capacity, general::ScanBack, decltype(sizes)::whole>(                   \
                d_o, prepared_back, dfinal_state, dv, pulls, adjoints, dinitial_state, sequences, 1.0f,    \
                heads, key_channels, value_channels, vector != 0);                                         \
        });                                                                                                \
  }

FOR_EACH_RULE_CAPACITY(SCANS_KERNEL)
