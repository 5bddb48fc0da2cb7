// What one token does to the state of a delta rule, S_t = diag(e_t) S_{t-1} + w_t (r_t^T S_{t-1}) + k_t
// v_t^T: a compile-time policy, since every delta rule is this step with other vectors r (reader), w (writer)
// and k. A policy loads what it needs for one token and key channel as bits and makes the step's factors of
// them.
#pragma once
#include "../device/decay.cuh"
#include "../device/format.cuh"

struct StepFactors {
  float decay, reader, writer, key;
};

// The generalised delta rule: all four are inputs [token, head, K]; `decays` are log decays <= 0, stored as
// Gate says.
template <class Format_, class Gate_>
struct GeneralTransition {
  using Format = Format_;
  using Gate = Gate_;
  struct Inputs {
    const typename Format::Bits *keys, *readers, *writers;
    const typename Gate::Bits* decays;

    __device__ Inputs from(i64 element) const {
      return {keys + element, readers + element, writers + element, decays + element};
    }
  };
  struct Raw {
    typename Format::Bits key, reader, writer;
    typename Gate::Bits decay;
  };

  // A token that is not there leaves the state as it is.
  static __device__ __forceinline__ Raw load(const Inputs& in, i64 element, bool live) {
    Raw raw = {0, 0, 0, 0};
    if (live) raw = {in.keys[element], in.readers[element], in.writers[element], in.decays[element]};
    return raw;
  }
  static __device__ __forceinline__ StepFactors decode(const Raw& raw) {
    return {decay_factor(Gate::decode(raw.decay) * log2_e), Format::decode(raw.reader),
            Format::decode(raw.writer), Format::decode(raw.key)};
  }
};
