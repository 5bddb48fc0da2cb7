// hgrn.chunk: the recurrence h_t = e^{g_t} h_{t-1} + x_t as a scan over chunks of 32 tokens, every chunk and
// channel a thread of its own. A chunk turns the state h before it into decay h + end, where decay is the
// product of its e^{g} and end what its tokens leave; in reversed time the gradient G of the state after it
// into decay G + start.
//   1. ends: decay, end and (backward) start of every chunk
//   2. states: the state before, (backward) the gradient after every chunk, a thread per sequence and channel
//   3. outputs, or gradients, chunk by chunk
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (x, o, dx) -DGATE=Bf16|Fp16|Fp32 (g, dg).
//   x, g, o, do, dx, dg [token, D]; initial_state (or null), final_state, dfinal_state (or null),
//   dinitial_state (or null) [N, D] fp32; decays, states, gradients [chunk, D] fp32; chunks [chunk][2]: first
//   token, tokens; sequences [N][3]: first token, tokens, first chunk
// Grid (x): parts ceil(D/128) of 128 threads; a part is a chunk, or in step 2 a sequence (of 64 threads).
#include "stretch.cuh"

using Element = ELEMENT;
using Gate = LogDecay<GATE>;
constexpr int chunk = assay::hgrn::chunk_tokens;

// gradients and d_o: null where only the forward direction runs.
extern "C" __global__ void __launch_bounds__(128)
    hgrn_chunk_ends(const Element::Bits* x, const Gate::Bits* g, const Element::Bits* d_o, float* decays,
                    float* states, float* gradients, const i64* chunks, int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const int count = int(chunks[2 * place.part + 1]);
  const i64 from = chunks[2 * place.part] * D + place.channel, to = i64(place.part) * D + place.channel;
  Stretch<Element, Gate, chunk> s;
  s.load(x + from, g + from, count, D);
  Element::Bits cotangents[chunk];
  if (d_o != nullptr) load_tokens<Element>(cotangents, d_o + from, count, D);
  float e[chunk], decay = 1.0f, end = 0.0f, start = 0.0f;
#pragma unroll
  for (int i = 0; i < chunk; ++i) {
    e[i] = decay_factor(Gate::decode(s.g[i]));  // tokens from `count` on: 1
    decay = decay * e[i];
    end = fused(e[i], end, Element::decode(s.x[i]));
  }
  decays[to] = decay;
  states[to] = end;
  if (d_o == nullptr) return;
#pragma unroll
  for (int i = chunk - 1; i >= 0; --i) start = e[i] * (start + Element::decode(cotangents[i]));
  gradients[to] = start;
}

// One chunk after the other, eight loaded at a time: values[at] becomes the state (or gradient) that meets
// the chunk, and the one that leaves the last chunk is returned.
template <class At>
__device__ __forceinline__ float scan_chunks(const float* decays, float* values, i64 count, float carried,
                                             const At& at) {
  constexpr int batch = 8;
  for (i64 begin = 0; begin < count; begin += batch) {
    float decay[batch], value[batch];
#pragma unroll
    for (int i = 0; i < batch; ++i)
      if (begin + i < count) decay[i] = decays[at(begin + i)], value[i] = values[at(begin + i)];
#pragma unroll
    for (int i = 0; i < batch; ++i)
      if (begin + i < count) {
        values[at(begin + i)] = carried;
        carried = fused(decay[i], carried, value[i]);
      }
  }
  return carried;
}

// final_state: null where only gradients are wanted.
extern "C" __global__ void __launch_bounds__(64)
    hgrn_chunk_states(const float* initial_state, float* final_state, const float* decays, float* states,
                      const i64* sequences, int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const i64 count = (sequences[3 * place.part + 1] + chunk - 1) / chunk,
            first = sequences[3 * place.part + 2];
  const i64 state = i64(place.part) * D + place.channel;
  const float h = initial_state != nullptr ? initial_state[state] : 0.0f;
  const float last =
      scan_chunks(decays, states, count, h, [&](i64 i) { return (first + i) * D + place.channel; });
  if (final_state != nullptr) final_state[state] = last;
}
extern "C" __global__ void __launch_bounds__(64)
    hgrn_chunk_state_gradients(const float* dfinal_state, float* dinitial_state, const float* decays,
                               float* gradients, const i64* sequences, int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const i64 count = (sequences[3 * place.part + 1] + chunk - 1) / chunk,
            first = sequences[3 * place.part + 2];
  const i64 state = i64(place.part) * D + place.channel;
  const float G = dfinal_state != nullptr ? dfinal_state[state] : 0.0f;
  const float left = scan_chunks(decays, gradients, count, G,
                                 [&](i64 i) { return (first + count - 1 - i) * D + place.channel; });
  if (dinitial_state != nullptr) dinitial_state[state] = left;
}

extern "C" __global__ void __launch_bounds__(128)
    hgrn_chunk_outputs(const Element::Bits* x, const Gate::Bits* g, const float* states, Element::Bits* o,
                       const i64* chunks, int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const int count = int(chunks[2 * place.part + 1]);
  const i64 from = chunks[2 * place.part] * D + place.channel;
  Stretch<Element, Gate, chunk> s;
  s.load(x + from, g + from, count, D);
  float h = states[i64(place.part) * D + place.channel];
#pragma unroll
  for (int i = 0; i < chunk; ++i) {
    h = s.advance(i, h);
    if (i < count) o[from + i * i64(D)] = Element::encode(h);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    hgrn_chunk_gradients(const Element::Bits* x, const Gate::Bits* g, const Element::Bits* d_o,
                         const float* states, const float* gradients, Element::Bits* dx, Gate::Bits* dg,
                         const i64* chunks, int D) {
  const Place place = Place::of(D);
  if (place.channel >= D) return;
  const int count = int(chunks[2 * place.part + 1]);
  const i64 from = chunks[2 * place.part] * D + place.channel, kept = i64(place.part) * D + place.channel;
  Stretch<Element, Gate, chunk> s;
  s.load(x + from, g + from, count, D);
  Element::Bits cotangents[chunk];
  load_tokens<Element>(cotangents, d_o + from, count, D);
  stretch_gradients(s, cotangents, states[kept], gradients[kept], count, dx + from, dg + from, D);
}
