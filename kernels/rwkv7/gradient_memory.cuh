// The memory of a block of chunk_gradients.cuh: what lies in shared memory, how it comes there, and where
// gradients go from there.
#pragma once
#include "../channel/gate_gradient.cuh"
#include "../channel/keys_memory.cuh"
#include "../device/shape.cuh"
#include "chunk_layout.h"

namespace general {

// A chunk's tensors: its first token and the head, channel 0; u, z, S and D as the scans keep them.
template <class Format, class Gate>
struct GradientInputs {
  using Bits = typename Format::Bits;
  using KeptBits = typename StateOf<Format>::Type::Bits;
  const Bits *r, *k, *a, *b, *v, *d_o;
  const typename Gate::Bits* w;
  const KeptBits *reads, *pulls, *S, *D;
  i64 key_stride, value_stride;  // from token to token
  int rows;
  Shape shape;
};

template <class Format, class Gate>
struct GradientTensors {
  typename Format::Bits *dr, *dk, *da, *db;
  typename Gate::Bits* dw;
};

// A block's shared memory.
template <class Format, class Gate>
struct GradientShared {
  using Kept = typename StateOf<Format>::Type;
  static constexpr assay::rwkv7::GradientLayout layout{sizes_of_format<Format>,
                                                       int(sizeof(typename Gate::Bits))};
  static constexpr int threads = layout.threads();
  using PairTile = Tile<Kept, 64>;
  using ValueTile = Tile<Format, layout.values>;
  using KeptValueTile = Tile<Kept, layout.values>;
  using StateTile = Tile<Kept, layout.keys>;
  using KeyTile = Tile<Format, layout.keys>;
  using GateTile = Tile<Gate, layout.keys>;
  char* base;

  // Below the diagonal M and above it the transpose of Q; N, and the transpose of P.
  __device__ char* own() const { return base; }
  __device__ char* crossed() const { return at<PairTile::bytes>(); }
  // M_ii, then N_ii.
  __device__ float* diagonals() const { return reinterpret_cast<float*>(at<layout.diagonals_offset>()); }
  __device__ char* cotangents() const { return at<layout.cotangents_offset>(); }
  __device__ char* values() const { return at<layout.values_offset>(); }
  __device__ char* reads() const { return at<layout.reads_offset>(); }
  __device__ char* pulls() const { return at<layout.pulls_offset>(); }
  __device__ char* states() const { return at<layout.states_offset>(); }
  __device__ char* adjoints() const { return at<layout.adjoints_offset>(); }
  __device__ char* queries() const { return at<layout.queries_offset>(); }
  __device__ char* keys() const { return at<layout.keys_offset>(); }
  __device__ char* readers() const { return at<layout.readers_offset>(); }
  __device__ char* writers() const { return at<layout.writers_offset>(); }
  __device__ char* gates() const { return at<layout.gates_offset>(); }
  // x (0) or y (1) of a tile, between the chunk's halves (2 more) or between a half's tiles.
  __device__ char* exchange(int group, int tile, int which) const {
    return at<layout.exchange_offset>() + ((group * 4 + tile) * 4 + which) * layout.block;
  }
  // Of a tile: what crosses chunks and ends in it (0), or starts (1); x z + y z' between the halves (2).
  __device__ float& sum(int tile, int which, int channel) const {
    return reinterpret_cast<float*>(at<layout.sums_offset>())[(3 * tile + which) * layout.keys + channel];
  }

 private:
  template <int offset>
  __device__ char* at() const {
    return base + offset;
  }
};

// How a block's tensors come into its shared memory: key channels from `key` on.
template <class Format, class Gate>
struct GradientLoads {
  using Shared = GradientShared<Format, Gate>;
  static constexpr int threads = Shared::threads;
  const GradientInputs<Format, Gate>& in;
  int key;

  // Value channels from `value` on.
  __device__ __forceinline__ void load_values(const Shared& shared, int value) const {
    const int channels = in.shape.value_channels - value;
    load_tile<typename Shared::ValueTile, threads>(shared.cotangents(), in.d_o + value, in.value_stride,
                                                   in.rows, channels, in.shape.vector);
    load_tile<typename Shared::ValueTile, threads>(shared.values(), in.v + value, in.value_stride, in.rows,
                                                   channels, in.shape.vector);
    load_tile<typename Shared::KeptValueTile, threads>(shared.reads(), in.reads + value, in.value_stride,
                                                       in.rows, channels, in.shape.vector);
    load_tile<typename Shared::KeptValueTile, threads>(shared.pulls(), in.pulls + value, in.value_stride,
                                                       in.rows, channels, in.shape.vector);
  }
  __device__ __forceinline__ void load_states(const Shared& shared, int value) const {
    const int padded_keys = 16 * in.shape.key_groups(),
              values = min(Shared::layout.values, 16 * in.shape.value_groups() - value);
    const i64 from = i64(value) * padded_keys + key;
    load_tile<typename Shared::StateTile, threads>(shared.states(), in.S + from, padded_keys, values,
                                                   padded_keys - key, true);
    load_tile<typename Shared::StateTile, threads>(shared.adjoints(), in.D + from, padded_keys, values,
                                                   padded_keys - key, true);
  }
  __device__ __forceinline__ void load_keys(const Shared& shared) const {
    const auto load = [&](char* to, const typename Format::Bits* from) {
      load_tile<typename Shared::KeyTile, threads>(to, from + key, in.key_stride, in.rows,
                                                   in.shape.key_channels - key, in.shape.vector);
    };
    load(shared.queries(), in.r), load(shared.keys(), in.k);
    load(shared.readers(), in.a), load(shared.writers(), in.b);
    load_tile<typename Shared::GateTile, threads>(shared.gates(), in.w + key, in.key_stride, in.rows,
                                                  in.shape.key_channels - key, in.shape.vector);
  }
};

// What a warp has of 16 tokens and key channels.
struct TileRows {
  Share r, k, a, b;
};

// Where the gradients of a block go: into the tiles of what they are the gradients of, and from there to
// tensors.
template <class Format, class Gate>
struct GradientsTo {
  using Shared = GradientShared<Format, Gate>;
  GradientTensors<Format, Gate> tensors;
  KeyPlace place;

  __device__ __forceinline__ void put(const Shared& shared, int row, int column, int lane, const TileRows& d,
                                      const Share& dw) const {
    using Stored = Fragment<typename Shared::KeyTile, Format>;
    __syncwarp();  // every lane has read what is overwritten
    Stored::store_columns(shared.queries(), d.r, row, column, lane);
    Stored::store_columns(shared.keys(), d.k, row, column, lane);
    Stored::store_columns(shared.readers(), d.a, row, column, lane);
    Stored::store_columns(shared.writers(), d.b, row, column, lane);
    Fragment<typename Shared::GateTile, Gate>::store_columns(shared.gates(), dw, row, column, lane);
  }
  __device__ __forceinline__ void finish(const Shared& shared) const {
    __syncthreads();
    store<typename Shared::KeyTile>(tensors.dr, shared.queries());
    store<typename Shared::KeyTile>(tensors.dk, shared.keys());
    store<typename Shared::KeyTile>(tensors.da, shared.readers());
    store<typename Shared::KeyTile>(tensors.db, shared.writers());
    store<typename Shared::GateTile>(tensors.dw, shared.gates());
  }

 private:
  template <class T>
  __device__ __forceinline__ void store(typename T::Bits* to, const char* tile) const {
    store_tile<T, Shared::threads>(to + place.at, tile, place.stride, place.rows, place.channels,
                                   place.vector);
  }
};

}  // namespace general
