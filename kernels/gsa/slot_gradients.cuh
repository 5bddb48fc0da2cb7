// Where ../channel/chunk_keys.cuh leaves the gradients of one pass: in fp32, as both passes' are still to be
// added or to go through the softmax.
#pragma once
#include "../channel/chunk_keys.cuh"

__device__ __forceinline__ void store_slots(float* to, const KeyPlace& place, int row, int column, int lane,
                                            const Share& x) {
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int channel = column + (lane >> 2) + 8 * (e >> 2), token = row + element_of(e & 3, lane);
    if (channel < place.channels && token < place.rows)
      to[place.at + token * place.stride + channel] = x[e >> 2][e & 3];
  }
}

// Of queries alone.
struct SlotReadout {
  static constexpr bool of_keys = false;
  float* x;

  template <class Shared>
  __device__ __forceinline__ void put(const Shared&, const KeyPlace& place, int row, int column, int lane,
                                      const Share& q, const Share&, const Share&) const {
    store_slots(x, place, row, column, lane, q);
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared&, const KeyPlace&) const {}
};

// Of keys and gates, and of queries where dw is not null.
struct SlotGradients {
  static constexpr bool of_keys = true;
  float *dw, *ds, *dg;

  template <class Shared>
  __device__ __forceinline__ void put(const Shared&, const KeyPlace& place, int row, int column, int lane,
                                      const Share& q, const Share& k, const Share& g) const {
    if (dw != nullptr) store_slots(dw, place, row, column, lane, q);
    store_slots(ds, place, row, column, lane, k);
    store_slots(dg, place, row, column, lane, g);
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared&, const KeyPlace&) const {}
};
