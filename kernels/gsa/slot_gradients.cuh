// Where ../channel/chunk_keys.cuh leaves the gradients of one pass: what goes through the softmax, and ds and
// dg, of which each pass gives a half.
#pragma once
#include "../channel/chunk_keys.cuh"
#include "slot_tile.cuh"

// A number per slot and token: to a block's tile of shared memory where it has all slots, else to a tensor in
// fp32 (`tensor` is not null).
struct SlotNumbers {
  float* tensor;

  template <class Shared>
  __device__ __forceinline__ void put(const Shared& shared, const KeyPlace& place, int row, int column,
                                      int lane, const Share& x) const {
    const auto channel = [&](int e) { return column + (lane >> 2) + 8 * (e >> 2); };
    const auto token = [&](int e) { return row + element_of(e & 3, lane); };
    if (tensor == nullptr) {
#pragma unroll
      for (int e = 0; e < 8; ++e) SlotTile::at(shared.slots(), token(e), channel(e)) = x[e >> 2][e & 3];
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (channel(e) < place.channels && token(e) < place.rows)
          tensor[place.at + token(e) * place.stride + channel(e)] = x[e >> 2][e & 3];
    }
  }
};
// The lane's row of its block's weights, in a tensor.
template <class Weight, int lanes>
struct WeightRow {
  SlotsOfLane<lanes> lane;
  typename Weight::Bits* to;
  bool live;

  __device__ WeightRow(typename Weight::Bits* weights, const KeyPlace& place)
      : lane(place.channels, int(threadIdx.x) >> 5, int(threadIdx.x) & 31),
        to(weights + place.at + lane.token * place.stride),
        live(lane.token < place.rows) {}
};

// Of queries alone: y, or the weights p where there is no tensor of y.
template <class Weight>
struct SlotReadout {
  static constexpr bool of_keys = false;
  SlotNumbers y;
  typename Weight::Bits* p;

  template <class Shared>
  __device__ __forceinline__ void expect(const Shared&, int, int, int) const {}
  template <class Shared>
  __device__ __forceinline__ void put(const Shared& shared, const KeyPlace& place, int row, int column,
                                      int lane, const Share& q, const Share&, const Share&) const {
    y.put(shared, place, row, column, lane, q);
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared& shared, const KeyPlace& place) const {
    if (y.tensor != nullptr) return;
    __syncthreads();
    const WeightRow<Weight, 2> row(p, place);
    softmax_of_tile<Weight>(row.lane, shared.slots(), row.to, row.live, place.vector);
  }
};

// ds and dg of a pass as its blocks' lanes have them.
struct Halves {
  float4* of_lanes;

  __device__ __forceinline__ float4* at(int row, int column, int lane) const {
    return of_lanes + (i64(blockIdx.x) * 16 + row / 4 + column / 16) * 128 + lane;
  }
  static __device__ __forceinline__ void store(float4* to, const Share& x) {
    to[0] = make_float4(x[0][0], x[0][1], x[0][2], x[0][3]);
    to[32] = make_float4(x[1][0], x[1][1], x[1][2], x[1][3]);
  }
  static __device__ __forceinline__ void add(Share& x, const float4* from, int step) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 half = from[step * i];
      x[i][0] = x[i][0] + half.x, x[i][1] = x[i][1] + half.y;
      x[i][2] = x[i][2] + half.z, x[i][3] = x[i][3] + half.w;
    }
  }
};

// Of the second pass: dp, or dy where there is no tensor of dp, and halves of ds and dg.
template <class Weight, int threads>
struct SecondPass {
  static constexpr bool of_keys = true;
  SlotNumbers dp;
  typename Weight::Bits* dy;
  Halves halves;

  template <class Shared>
  __device__ __forceinline__ void expect(const Shared&, int, int, int) const {}
  template <class Shared>
  __device__ __forceinline__ void put(const Shared& shared, const KeyPlace& place, int row, int column,
                                      int lane, const Share& q, const Share& k, const Share& g) const {
    dp.put(shared, place, row, column, lane, q);
    float4* to = halves.at(row, column, lane);
    Halves::store(to, k);
    Halves::store(to + 64, g);
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared& shared, const KeyPlace& place) const {
    if (dp.tensor != nullptr) return;
    __syncthreads();
    const WeightRow<Weight, threads / 64> row(dy, place);
    softmax_gradient_of_tile<typename Shared::QueryTile, Weight>(row.lane, shared.queries(), shared.slots(),
                                                                 row.to, row.live, place.vector);
  }
};

// Of the first pass: ds and dg, with their halves of the second. Where two warps have the same slots these
// are on their way to the place of S and D meanwhile.
template <class Format, class Gate, int threads>
struct FirstPass {
  static constexpr bool of_keys = true, ahead = threads == 256;
  Halves halves;
  typename Format::Bits* ds;
  typename Gate::Bits* dg;

  // A thread's own part.
  template <class Shared>
  static __device__ __forceinline__ float4* own(const Shared& shared) {
    static_assert(!ahead || Shared::layout.slots_offset + 4 * 16 * threads <= Shared::layout.bytes,
                  "of S and D");
    return reinterpret_cast<float4*>(shared.slots()) + threadIdx.x;
  }
  template <class Shared>
  __device__ __forceinline__ void expect(const Shared& shared, int row, int column, int lane) const {
    if constexpr (ahead) {
      float4* to = own<Shared>(shared);
      const float4* from = halves.at(row, column, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) copy_async(reinterpret_cast<char*>(to + threads * i), from + 32 * i, 16);
      commit_copies();
    }
  }
  template <class Shared>
  __device__ __forceinline__ void put(const Shared& shared, const KeyPlace&, int row, int column, int lane,
                                      const Share&, const Share& k, const Share& g) const {
    Share of_keys, of_gates;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      of_keys[e >> 2][e & 3] = k[e >> 2][e & 3], of_gates[e >> 2][e & 3] = g[e >> 2][e & 3];
    const float4* from = ahead ? own<Shared>(shared) : halves.at(row, column, lane);
    constexpr int step = ahead ? threads : 32;
    if constexpr (ahead) wait_copies<0>();
    Halves::add(of_keys, from, step);
    Halves::add(of_gates, from + 2 * step, step);
    __syncwarp();  // every lane has read what is overwritten
    Fragment<typename Shared::KeyTile, Format>::store_columns(shared.keys(), of_keys, row, column, lane);
    Fragment<typename Shared::GateTile, Gate>::store_columns(shared.gates(), of_gates, row, column, lane);
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared& shared, const KeyPlace& place) const {
    __syncthreads();
    store_tile<typename Shared::KeyTile, threads>(ds + place.at, shared.keys(), place.stride, place.rows,
                                                  place.channels, place.vector);
    store_tile<typename Shared::GateTile, threads>(dg + place.at, shared.gates(), place.stride, place.rows,
                                                   place.channels, place.vector);
  }
};
