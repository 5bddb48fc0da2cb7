// hgrn.fused_recurrent: h_t = e^{g_t} h_{t-1} + x_t, o_t = h_t, token after token, one thread per sequence
// and channel. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (x, o, dx) -DGATE=Bf16|Fp16|Fp32 (g,
// dg).
//   x, g, o, do, dx, dg [token, D]; initial_state (or null), final_state, dfinal_state (or null),
//   dinitial_state (or null) [N, D] fp32; sequences [N][3]: first token, tokens, first stretch of 16 tokens
// Grid (x): N ceil(D/64), 64 threads.
#include "stretch.cuh"

using Element = ELEMENT;
using Gate = LogDecay<GATE>;
constexpr int stretch = assay::hgrn::stretch_tokens;

struct Tokens {
  i64 first, count, slot;

  static __device__ Tokens of(const i64* sequences, int sequence) {
    return {sequences[3 * sequence], sequences[3 * sequence + 1], sequences[3 * sequence + 2]};
  }
};

// A channel's tokens from number `begin` on; the last one of all again in place of those behind it.
template <class Bits>
__device__ __forceinline__ void load_stretch(Bits (&to)[stretch], const Bits* from, i64 begin, i64 tokens,
                                             int D) {
  const int most = int(min(i64(stretch), tokens - begin)) - 1;
#pragma unroll
  for (int i = 0; i < stretch; ++i) to[i] = from[begin * D + i64(min(i, most)) * D];
}
__device__ __forceinline__ void load_stretch(Stretch<Element, Gate, stretch>& to, const Element::Bits* x,
                                             const Gate::Bits* g, i64 begin, i64 tokens, int D) {
  load_stretch(to.x, x, begin, tokens, D);
  load_stretch(to.g, g, begin, tokens, D);
}

extern "C" __global__ void __launch_bounds__(64)
    hgrn_fused_recurrent(const Element::Bits* x, const Gate::Bits* g, const float* initial_state,
                         Element::Bits* o, float* final_state, const i64* sequences, int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const Tokens t = Tokens::of(sequences, place.part);
  const i64 from = t.first * D + place.channel, state = i64(place.part) * D + place.channel;
  float h = initial_state != nullptr ? initial_state[state] : 0.0f;
  Stretch<Element, Gate, stretch> next;
  if (t.count > 0) load_stretch(next, x + from, g + from, 0, t.count, D);
  for (i64 begin = 0; begin < t.count; begin += stretch) {
    const Stretch<Element, Gate, stretch> now = next;
    load_stretch(next, x + from, g + from, begin + stretch, t.count, D);
#pragma unroll
    for (int i = 0; i < stretch; ++i)
      if (begin + i < t.count) {
        h = now.advance(i, h);
        o[from + (begin + i) * D] = Element::encode(h);
      }
  }
  final_state[state] = h;
}

// The gradients of the tokens, of which there are some; G arrives from the final state and leaves for the
// initial one. states: before every stretch but the last, [stretch, D].
__device__ __forceinline__ float token_gradients(const Element::Bits* x, const Gate::Bits* g,
                                                 const Element::Bits* d_o, Element::Bits* dx, Gate::Bits* dg,
                                                 float* states, i64 tokens, int D, float h, float G) {
  const i64 last = (tokens - 1) >> 4;  // number of the last stretch
  static_assert(stretch == 16);
  Stretch<Element, Gate, stretch> next;
  load_stretch(next, x, g, 0, tokens, D);
  for (i64 at = 0; at < last; ++at) {
    states[at * D] = h;
    const Stretch<Element, Gate, stretch> now = next;
    load_stretch(next, x, g, (at + 1) * stretch, tokens, D);
#pragma unroll
    for (int i = 0; i < stretch; ++i) h = now.advance(i, h);
  }
  Element::Bits next_do[stretch];
  load_stretch(next_do, d_o, last * stretch, tokens, D);
  i64 at = last;
  do {
    const Stretch<Element, Gate, stretch> now = next;
    Element::Bits now_do[stretch];
#pragma unroll
    for (int i = 0; i < stretch; ++i) now_do[i] = next_do[i];
    const float before = h;
    if (at > 0) {
      const i64 earlier = (at - 1) * stretch * D;
      next.load(x + earlier, g + earlier, stretch, D);
      load_tokens<Element>(next_do, d_o + earlier, stretch, D);
      h = states[(at - 1) * D];
    }
    const i64 begin = at * stretch;
    G = stretch_gradients(now, now_do, before, G, int(min(i64(stretch), tokens - begin)), dx + begin * D,
                          dg + begin * D, D);
  } while (--at >= 0);
  return G;
}

// states: [stretch, D] fp32, written and read by this thread alone.
extern "C" __global__ void __launch_bounds__(64)
    hgrn_fused_recurrent_backward(const Element::Bits* x, const Gate::Bits* g, const Element::Bits* d_o,
                                  const float* initial_state, const float* dfinal_state, Element::Bits* dx,
                                  Gate::Bits* dg, float* dinitial_state, float* states, const i64* sequences,
                                  int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const Tokens t = Tokens::of(sequences, place.part);
  const i64 from = t.first * D + place.channel, state = i64(place.part) * D + place.channel;
  const float h = initial_state != nullptr ? initial_state[state] : 0.0f;
  float G = dfinal_state != nullptr ? dfinal_state[state] : 0.0f;
  if (t.count > 0)
    G = token_gradients(x + from, g + from, d_o + from, dx + from, dg + from,
                        states + t.slot * D + place.channel, t.count, D, h, G);
  if (dinitial_state != nullptr) dinitial_state[state] = G;
}
