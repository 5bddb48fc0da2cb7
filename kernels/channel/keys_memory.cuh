// The memory of a block of chunk_keys.cuh: what lies in shared memory, how it comes there, and where
// gradients go from there.
#pragma once
#include "../device/tile.cuh"
#include "chunk_layout.h"
#include "fragment.cuh"

// A block's shared memory. `Query`: the format of q.
template <class Format, class Gate, class Query>
struct KeyShared {
  using Plain = typename StateOf<Format>::Type;
  using QueryTile = Tile<Query, 64>;
  using KeyTile = Tile<Format, 64>;
  using GateTile = Tile<Gate, 64>;
  using ValueTile = Tile<Format, 64>;
  using StateTile = Tile<Plain, 64>;
  static constexpr assay::channel::KeysLayout layout{
      sizes_of_format<Format>, int(sizeof(typename Gate::Bits)), int(sizeof(typename Query::Bits))};
  static constexpr bool early = layout.early;
  static constexpr int operand_bytes = sizes_of_format<Format>.operand_block;
  char* base;

  __device__ char* cotangents() const { return base; }
  __device__ char* values() const { return at<layout.values_offset>(); }
  __device__ char* states() const { return at<layout.states_offset>(); }
  __device__ char* adjoints() const { return at<layout.adjoints_offset>(); }
  __device__ char* products() const { return base; }
  __device__ float* diagonal() const { return reinterpret_cast<float*>(at<layout.diagonal_offset>()); }
  __device__ char* queries() const { return at<layout.queries_offset>(); }
  __device__ char* keys() const { return at<layout.keys_offset>(); }
  __device__ char* gates() const { return at<layout.gates_offset>(); }
  __device__ char* slots() const { return at<layout.slots_offset>(); }
  // Between the warps of a chunk's halves: operands of a tile for 16 key channels; sums by key channel, of
  // q dq or k dk of a tile (0 to 3), of S (.) D (4), of gates of a half (5, 6).
  __device__ char* exchange(int group, int tile) const {
    return at<layout.exchange_offset>() + (4 * group + tile) * operand_bytes;
  }
  __device__ float& sum(int which, int channel) const {
    return reinterpret_cast<float*>(at<layout.sums_offset>())[64 * which + channel];
  }

 private:
  template <int offset>
  __device__ char* at() const {
    return base + offset;
  }
};

// Starts loading 64 channels of a chunk's keys and gates; zeros where there are no gates. `Shared` as
// KeyShared.
template <class Shared, int threads = 128>
__device__ __forceinline__ void load_keys_and_gates(const Shared& shared,
                                                    const typename Shared::KeyTile::Bits* k, i64 key_stride,
                                                    const typename Shared::GateTile::Bits* g, i64 gate_stride,
                                                    int rows, int channels, bool vector) {
  load_tile<typename Shared::KeyTile, threads>(shared.keys(), k, key_stride, rows, channels, vector);
  if (g != nullptr)
    load_tile<typename Shared::GateTile, threads>(shared.gates(), g, gate_stride, rows, channels, vector);
  else
#pragma unroll 1
    for (int i = int(threadIdx.x); i < Shared::GateTile::bytes / 4; i += threads)
      reinterpret_cast<u32*>(shared.gates())[i] = 0;
}

// A block's part of the tensors of q, k and g, and of their gradients.
struct KeyPlace {
  i64 at, stride;      // of its first token and channel, and from token to token
  int rows, channels;  // tokens of the chunk, channels from the first on
  bool vector;
};

// Where gradients go: into the tiles of what they are the gradients of, and from there to tensors of the same
// formats; dg may be null.
template <class Format, class Gate, int threads = 128>
struct GradientTensors {
  static constexpr bool of_keys = true;
  typename Format::Bits *dq, *dk;
  typename Gate::Bits* dg;

  // Called before what is put at this place is made.
  template <class Shared>
  __device__ __forceinline__ void expect(const Shared&, int, int, int) const {}
  template <class Shared>
  __device__ __forceinline__ void put(const Shared& shared, const KeyPlace&, int row, int column, int lane,
                                      const Share& q, const Share& k, const Share& g) const {
    __syncwarp();  // every lane has read what is overwritten
    Fragment<typename Shared::QueryTile, Format>::store_columns(shared.queries(), q, row, column, lane);
    Fragment<typename Shared::KeyTile, Format>::store_columns(shared.keys(), k, row, column, lane);
    Fragment<typename Shared::GateTile, Gate>::store_columns(shared.gates(), g, row, column, lane);
  }
  template <class Shared>
  __device__ __forceinline__ void finish(const Shared& shared, const KeyPlace& place) const {
    __syncthreads();
    store<typename Shared::QueryTile>(dq, shared.queries(), place);
    store<typename Shared::KeyTile>(dk, shared.keys(), place);
    if (dg != nullptr) store<typename Shared::GateTile>(dg, shared.gates(), place);
  }
  template <class T>
  static __device__ __forceinline__ void store(typename T::Bits* to, const char* tile,
                                               const KeyPlace& place) {
    store_tile<T, threads>(to + place.at, tile, place.stride, place.rows, place.channels, place.vector);
  }
};

// Where a block's tensors begin, and how they come into its shared memory. Of q, k and g: the block's first
// token and channel; of do and v: its first token; of S and D: the chunk's, the block's first key channel.
template <class Format, class Gate, class Query, class Gradients, int threads>
struct KeyInputs {
  using Shared = KeyShared<Format, Gate, Query>;
  using StateBits = typename Shared::Plain::Bits;
  const typename Query::Bits* q;
  const typename Format::Bits* k;
  const typename Gate::Bits* g;  // or null
  const typename Format::Bits *d_o, *v;
  const StateBits *S, *D;
  KeyPlace place;
  i64 value_stride;            // from token to token
  int values, padded_values;   // channels
  int padded_keys, live_keys;  // of the states' rows; from the block's first on

  __device__ __forceinline__ void load_keys(const Shared& shared) const {
    if constexpr (Gradients::of_keys)
      load_tile<typename Shared::QueryTile, threads>(shared.queries(), q, place.stride, place.rows,
                                                     place.channels, place.vector);
    load_keys_and_gates<Shared, threads>(shared, k, place.stride, g, place.stride, place.rows, place.channels,
                                         place.vector);
  }
  // 64 value channels from `begin` on.
  __device__ __forceinline__ void load_values(const Shared& shared, int begin) const {
    load_tile<typename Shared::ValueTile, threads>(shared.cotangents(), d_o + begin, value_stride, place.rows,
                                                   values - begin, place.vector);
    load_tile<typename Shared::ValueTile, threads>(shared.values(), v + begin, value_stride, place.rows,
                                                   values - begin, place.vector);
    const i64 from = i64(begin) * padded_keys;
    const int live = padded_values - begin;
    load_tile<typename Shared::StateTile, threads>(shared.states(), S + from, padded_keys, live, live_keys,
                                                   true);
    if constexpr (Gradients::of_keys)
      load_tile<typename Shared::StateTile, threads>(shared.adjoints(), D + from, padded_keys, live,
                                                     live_keys, true);
  }
};
