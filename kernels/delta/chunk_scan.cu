// delta_rule, gated_delta_rule and kda, chunk, forward: outputs and the state, chunk after chunk, from what
// chunk_prepare.cu left (chunk_scan.cuh). Built once per element format, -DELEMENT=Bf16|Fp16|Fp32 (v, o).
//   v, o [token, heads, V]; prepared: workspace [chunk][heads] of PreparedLayout; initial_state (or null),
//   final_state [N, heads, K, V] fp32; sequences [N][3]: first token, tokens, first chunk
// Grid (x): N heads ceil(V/64), 128 threads; *_C serves K <= C.
#include "chunk_scan.cuh"

using Element = ELEMENT;

#define SCAN_KERNEL(capacity)                                                                               \
  extern "C" __global__ void __launch_bounds__(128, 1)                                                      \
      delta_chunk_scan_##capacity(const Element::Bits* v, const char* prepared, const float* initial_state, \
                                  Element::Bits* o, float* final_state, const i64* sequences, float scale,  \
                                  int heads, int key_channels, int value_channels, int vector) {            \
    rule::for_sizes<Element, capacity>(key_channels, value_channels, [&](auto sizes) {                      \
      rule::scan<Element, capacity, rule::ScanForward, decltype(sizes)::whole>(                             \
          v, prepared, initial_state, o, {nullptr, nullptr, {nullptr}}, final_state, sequences, scale,      \
          heads, key_channels, value_channels, vector != 0);                                                \
    });                                                                                                     \
  }

FOR_EACH_RULE_CAPACITY(SCAN_KERNEL)
