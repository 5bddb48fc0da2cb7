// hgrn.fused_recurrent: h_t = e^{g_t} h_{t-1} + x_t, o_t = h_t, token after token, one thread per sequence
// and channel. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (x, o, dx) -DGATE=Bf16|Fp16|Fp32 (g,
// dg).
//   x, g, o, do, dx, dg [token, D]; initial_state (or null), final_state, dfinal_state (or null),
//   dinitial_state (or null) [N, D] fp32; sequences [N][3]: first token, tokens, first stretch of 16 tokens
// Grid (x): N ceil(D/64), 64 threads.
#include "stretch.cuh"

using Element = ELEMENT;
using Gate = LogDecay<GATE>;
constexpr int stretch = 16;  // plan.cpp says the same

struct Tokens {
  i64 first, count, slot;

  static __device__ Tokens of(const i64* sequences, int sequence) {
    return {sequences[3 * sequence], sequences[3 * sequence + 1], sequences[3 * sequence + 2]};
  }
  __device__ int in_stretch(i64 begin) const { return int(min(i64(stretch), count - begin)); }
};

// Runs a channel's tokens; `each` gets the first token of every stretch with the state before it, `out` every
// state.
template <class Each, class Out>
__device__ __forceinline__ float run_tokens(const Element::Bits* x, const Gate::Bits* g, i64 tokens, i64 D,
                                            float h, const Each& each, const Out& out) {
  Stretch<Element, Gate, stretch> next;
  next.load(x, g, int(min(i64(stretch), tokens)), D);
  for (i64 begin = 0; begin < tokens; begin += stretch) {
    const Stretch<Element, Gate, stretch> now = next;
    const i64 after = begin + stretch;
    next.load(x + after * D, g + after * D, int(min(i64(stretch), tokens - after)), D);
    each(begin, h);
#pragma unroll
    for (int i = 0; i < stretch; ++i)
      if (begin + i < tokens) {
        h = now.advance(i, h);
        out(begin + i, h);
      }
  }
  return h;
}

extern "C" __global__ void __launch_bounds__(64)
    hgrn_fused_recurrent(const Element::Bits* x, const Gate::Bits* g, const float* initial_state,
                         Element::Bits* o, float* final_state, const i64* sequences, int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const Tokens t = Tokens::of(sequences, place.part);
  const i64 from = t.first * D + place.channel, state = i64(place.part) * D + place.channel;
  const float h = initial_state != nullptr ? initial_state[state] : 0.0f;
  final_state[state] = run_tokens(
      x + from, g + from, t.count, D, h, [](i64, float) {},
      [&](i64 token, float now) { o[from + token * D] = Element::encode(now); });
}

// states: [stretch, D] fp32, the state before every stretch, written and read by this thread alone.
extern "C" __global__ void __launch_bounds__(64)
    hgrn_fused_recurrent_backward(const Element::Bits* x, const Gate::Bits* g, const Element::Bits* d_o,
                                  const float* initial_state, const float* dfinal_state, Element::Bits* dx,
                                  Gate::Bits* dg, float* dinitial_state, float* states, const i64* sequences,
                                  int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const Tokens t = Tokens::of(sequences, place.part);
  const i64 from = t.first * D + place.channel, state = i64(place.part) * D + place.channel;
  const i64 kept = t.slot * D + place.channel;
  run_tokens(
      x + from, g + from, t.count, D, initial_state != nullptr ? initial_state[state] : 0.0f,
      [&](i64 begin, float h) { states[kept + begin / stretch * D] = h; }, [](i64, float) {});

  float G = dfinal_state != nullptr ? dfinal_state[state] : 0.0f;
  Stretch<Element, Gate, stretch> next;
  Element::Bits next_do[stretch];
  float next_h = 0.0f;
  const auto load = [&](i64 begin) {
    if (begin < 0) return;
    next.load(x + from + begin * D, g + from + begin * D, t.in_stretch(begin), D);
    load_tokens<Element>(next_do, d_o + from + begin * D, t.in_stretch(begin), D);
    next_h = states[kept + begin / stretch * D];
  };
  const i64 last = (t.count - 1) / stretch * stretch;
  if (t.count > 0) load(last);
  for (i64 begin = last; begin >= 0 && t.count > 0; begin -= stretch) {
    const Stretch<Element, Gate, stretch> now = next;
    Element::Bits now_do[stretch];
#pragma unroll
    for (int i = 0; i < stretch; ++i) now_do[i] = next_do[i];
    const float h = next_h;
    load(begin - stretch);
    const i64 at = from + begin * D;
    G = stretch_gradients(now, now_do, h, G, t.in_stretch(begin), dx + at, dg + at, D);
  }
  if (dinitial_state != nullptr) dinitial_state[state] = G;
}
