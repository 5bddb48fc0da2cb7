// Gated slot attention without g: what is written and how it decays follow from s, slot by slot, with
// z_t = log(e^{z_{t-1}} + e^{s_t}), z_1 = s_1:
//   w_t = e^{s_t - z_t} = 1 / (1 + e^{-x}), g_t = z_{t-1} - z_t = -log(1 + e^x), x = s_t - z_{t-1};
//   w_1 = 1, g_1 = 0
// All else is then computed in fp32 from copies. Built once per format: -DELEMENT=Bf16|Fp16|Fp32.
//   gsa_own_decays     w, g from s
//   gsa_own_gradients  ds from the gradients of w and g
//   gsa_widen, gsa_narrow  a tensor to fp32, and back
//   s, w, g, dw, dg, ds [token, H, M], all but s and ds fp32; sequences [N][3]: first token, tokens, (unused)
// Grids (x): a thread per sequence, head and slot, or per element; 128 threads.
#include "slots.cuh"

using Element = ELEMENT;

// e^g is 0 from here on: what is below only makes sums of g large.
constexpr float least_decay = -1e4f;

// The slot of a thread: its first element, and how many tokens it has.
struct SlotScan {
  i64 at, tokens, stride;
  bool live;

  __device__ SlotScan(const i64* sequences, i64 count, int heads, int slots) : stride(i64(heads) * slots) {
    const i64 i = thread_index();
    live = i < count;
    const i64 sequence = live ? i / stride : 0;
    at = sequences[3 * sequence] * stride + i % stride, tokens = sequences[3 * sequence + 1];
  }
};

// log(1 + e) for 0 <= e <= 1, relative error at most 6 u: 2 artanh(r), r = e / (2 + e) <= 1/3, by eight terms
// of its series; the first one left out is below 2^-29 of the sum. r has 3 roundings, its square 7; that
// moves the sum, whose terms after the first are at most 4 % of it, by 3.3 u; Horner's last steps round
// by 1.1 u, the product with 2 r once.
__device__ __forceinline__ float log_of_one_plus(float e) {
  const float r = e * __frcp_rn(2.0f + e), x = r * r;
  float sum = 0x1.111112p-4f;           // 1 / 15
  sum = fused(sum, x, 0x1.3b13b2p-4f);  // 1 / 13
  sum = fused(sum, x, 0x1.745d18p-4f);  // 1 / 11
  sum = fused(sum, x, 0x1.c71c72p-4f);  // 1 / 9
  sum = fused(sum, x, 0x1.24924ap-3f);  // 1 / 7
  sum = fused(sum, x, 0x1.99999ap-3f);  // 1 / 5
  sum = fused(sum, x, 0x1.555556p-2f);  // 1 / 3
  sum = fused(sum, x, 1.0f);
  return 2.0f * r * sum;
}

// A number as the sum of two, the second at most half a unit in the last place of the first.
struct SplitSum {
  float high, low;

  // a + b exactly, where it does not overflow.
  static __device__ __forceinline__ SplitSum of(float a, float b) {
    const float high = a + b, of_b = high - a;
    return {high, (a - (high - of_b)) + (b - of_b)};
  }
};

// z has two parts: what rounding it loses would add up over the tokens and go into every weight.
extern "C" __global__ void __launch_bounds__(128)
    gsa_own_decays(const Element::Bits* s, float* w, float* g, const i64* sequences, i64 count, int heads,
                   int slots) {
  const SlotScan scan(sequences, count, heads, slots);
  if (!scan.live) return;
  SplitSum z = {0.0f, 0.0f};
#pragma unroll 1
  for (i64 t = 0; t < scan.tokens; ++t) {
    const i64 at = scan.at + t * scan.stride;
    const float s_t = Element::decode(s[at]), x = (s_t - z.high) - z.low;
    const bool first = t == 0, up = x > 0.0f;
    const float least = power_of_two((up ? -x : x) * log2_e), tail = log_of_one_plus(least);
    const float share = __frcp_rn(1.0f + least), decay = -((up ? x : 0.0f) + tail);
    w[at] = first ? 1.0f : up ? share : least * share;
    g[at] = first ? 0.0f : decay > least_decay ? decay : least_decay;
    z = first ? SplitSum{s_t, 0.0f} : SplitSum::of(up ? s_t : z.high, up ? tail : z.low + tail);
  }
}

// In reverse time, with Z what later tokens give to dL/dz_t:
//   ds_t = w_t (e^{g_t} dw_t + Z - dg_t);  Z <- e^{g_t} (Z - w_t dw_t) + w_t dg_t;  ds_1 = Z.
extern "C" __global__ void __launch_bounds__(128)
    gsa_own_gradients(const float* w, const float* g, const float* dw, const float* dg, Element::Bits* ds,
                      const i64* sequences, i64 count, int heads, int slots) {
  const SlotScan scan(sequences, count, heads, slots);
  if (!scan.live) return;
  float Z = 0.0f;
#pragma unroll 1
  for (i64 t = scan.tokens - 1; t > 0; --t) {
    const i64 at = scan.at + t * scan.stride;
    const float weight = w[at], a = decay_factor(g[at] * log2_e), of_weight = dw[at], of_decay = dg[at];
    ds[at] = Element::encode(weight * fused(a, of_weight, Z - of_decay));
    Z = fused(a, fused(-weight, of_weight, Z), weight * of_decay);
  }
  if (scan.tokens > 0) ds[scan.at] = Element::encode(Z);
}

extern "C" __global__ void __launch_bounds__(128) gsa_widen(const Element::Bits* from, float* to, i64 count) {
  const i64 i = thread_index();
  if (i < count) to[i] = Element::decode(from[i]);
}
extern "C" __global__ void __launch_bounds__(128)
    gsa_narrow(const float* from, Element::Bits* to, i64 count) {
  const i64 i = thread_index();
  if (i < count) to[i] = Element::encode(from[i]);
}
