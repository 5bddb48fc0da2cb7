// delta_rule, gated_delta_rule and kda, chunk, backward: two scans at once, chunk after chunk
// (chunk_scan.cuh), from what chunk_prepare.cu left; chunk_gradients.cu makes the rest of what they keep:
//   forward   u and v - S'^T k of every token, S at every chunk's start
//   backward  dv, G^T k, D = dL/dS at every chunk's end, dinitial_state, last chunk first
// Built once per element format, -DELEMENT=Bf16|Fp16|Fp32 (v, do, dv).
//   v, do, dv [token, heads, V]; prepared, prepared_back: workspaces [chunk][heads] of PreparedLayout
//   updates, residuals (or null); updates_back (or null: dv), residuals_back (or null) [token, heads, V];
//   states, adjoints [chunk][heads][V][K], V and K padded to multiples of 16: all of bf16 (fp16, fp32: fp32)
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, heads, K, V] fp32
//   sequences [N][3]: first token, tokens, first chunk
// Grids: N heads ceil(V/64), 2; 128 threads; *_C serves K <= C.
#include "chunk_scan.cuh"

using Element = ELEMENT;
using KeptBits = StateOf<Element>::Type::Bits;

#define SCANS_KERNEL(capacity)                                                                             \
  extern "C" __global__ void __launch_bounds__(128, 1) delta_chunk_scans_##capacity(                       \
      const Element::Bits* v, const Element::Bits* d_o, const char* prepared, const char* prepared_back,   \
      const float* initial_state, const float* dfinal_state, KeptBits* updates, KeptBits* residuals,       \
      KeptBits* states, Element::Bits* dv, KeptBits* updates_back, KeptBits* residuals_back,               \
      KeptBits* adjoints, float* dinitial_state, const i64* sequences, int heads, int key_channels,        \
      int value_channels, int vector) {                                                                    \
    rule::for_sizes<Element, capacity>(key_channels, value_channels, [&](auto sizes) {                     \
      if (blockIdx.y == 0)                                                                                 \
        rule::scan<Element, capacity, rule::ScanStates, decltype(sizes)::whole>(                           \
            v, prepared, initial_state, nullptr, {updates, residuals, {states}}, nullptr, sequences, 1.0f, \
            heads, key_channels, value_channels, vector != 0);                                             \
      else                                                                                                 \
        rule::scan_back<Element, capacity, decltype(sizes)::whole>(                                        \
            d_o, prepared_back, dfinal_state, dv, {updates_back, residuals_back, {adjoints}},              \
            dinitial_state, sequences, heads, key_channels, value_channels, vector != 0);                  \
    });                                                                                                    \
  }

FOR_EACH_RULE_CAPACITY(SCANS_KERNEL)
