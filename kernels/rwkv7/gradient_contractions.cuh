// What the gradients of chunk_gradients.cuh take from the value channels: sums of pairs of tokens, and what
// crosses chunks.
#pragma once
#include "../channel/gate_gradient.cuh"
#include "../channel/value_contractions.cuh"
#include "gradient_memory.cuh"

namespace general {

// One warp's sums over value channels of pairs of tokens: of 16 later ones, with do (M, N) or what they pull
// (P, Q).
template <class Format, class Gate, bool pulls>
struct PairContractions {
  using Shared = GradientShared<Format, Gate>;
  using Operand = typename OperandOf<Format>::Type;
  using Values = Fragment<typename Shared::ValueTile, Format>;
  using KeptValues = Fragment<typename Shared::KeptValueTile, typename Shared::Kept>;
  Accumulator with_values[4][2], with_reads[4][2];  // by the tile of j

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) with_values[tile][half].clear(), with_reads[tile][half].clear();
  }
  // Adds 16 value channels.
  __device__ __forceinline__ void add(const Shared& shared, int value, int later, int lane) {
    Operand own;
    if constexpr (pulls)
      own = KeptValues::template row_operand<Operand>(shared.pulls(), 16 * later, value, lane);
    else
      own = Values::template row_operand<Operand>(shared.cotangents(), 16 * later, value, lane);
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      if (tile > later) continue;
      const Operand v = Values::template row_operand<Operand>(shared.values(), 16 * tile, value, lane),
                    u = KeptValues::template row_operand<Operand>(shared.reads(), 16 * tile, value, lane);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        multiply(with_values[tile][half], own, v, half), multiply(with_reads[tile][half], own, u, half);
    }
  }
  // To shared memory, as it says.
  __device__ __forceinline__ void store(const Shared& shared, float scale, int later, int lane) const {
    using T = typename Shared::PairTile;
    const auto put = [](char* to, int row, int column, float x) {
      *reinterpret_cast<typename T::Bits*>(to + T::offset(row, column)) = T::Element::encode(x);
    };
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      if (tile > later) continue;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int i = 16 * later + (lane >> 2) + 8 * ((e >> 1) & 1),
                  j = 16 * tile + 2 * (lane & 3) + (e & 1) + 8 * (e >> 2);
        const float of_values = with_values[tile][e >> 2].r[e & 3],
                    of_reads = with_reads[tile][e >> 2].r[e & 3];
        if constexpr (pulls) {
          if (j < i) put(shared.crossed(), j, i, of_values), put(shared.own(), j, i, of_reads);
        } else {
          const float m = of_values * scale, n = of_reads * scale;
          if (j == i) shared.diagonals()[i] = m, shared.diagonals()[64 + i] = n;
          if (j <= i)
            put(shared.own(), i, j, j < i ? m : 0.0f), put(shared.crossed(), i, j, j < i ? n : 0.0f);
        }
      }
    }
  }
};

// One warp's sums over value channels for 16 key channels and tokens: what crosses chunks.
template <class Format, class Gate>
struct ChannelContractions {
  using Shared = GradientShared<Format, Gate>;
  using Operand = typename OperandOf<Format>::Type;
  using Values = Fragment<typename Shared::ValueTile, Format>;
  using KeptValues = Fragment<typename Shared::KeptValueTile, typename Shared::Kept>;
  using States = Fragment<typename Shared::StateTile, typename Shared::Kept>;
  Accumulator queries[2], readers[2], keys[2], writers[2];  // S do, S z, D v, D u
  float carried[2];                                         // rowsum(S (.) D) over the lane's value channels

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      queries[half].clear(), readers[half].clear(), keys[half].clear(), writers[half].clear();
    carried[0] = carried[1] = 0.0f;
  }
  // Adds 16 value channels.
  __device__ __forceinline__ void add(const Shared& shared, int value, int column, int row, int lane) {
    const Operand state = States::template column_operand<Operand>(shared.states(), value, column, lane),
                  adjoint = States::template column_operand<Operand>(shared.adjoints(), value, column, lane);
    Share s, d;
    States::columns(s, shared.states(), value, column, lane);
    States::columns(d, shared.adjoints(), value, column, lane);
    add_products(carried, s, d);
    const Operand d_o = Values::template row_operand<Operand>(shared.cotangents(), row, value, lane),
                  z = KeptValues::template row_operand<Operand>(shared.pulls(), row, value, lane),
                  v = Values::template row_operand<Operand>(shared.values(), row, value, lane),
                  u = KeptValues::template row_operand<Operand>(shared.reads(), row, value, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      multiply(queries[half], state, d_o, half), multiply(readers[half], state, z, half);
      multiply(keys[half], adjoint, v, half), multiply(writers[half], adjoint, u, half);
    }
  }
};

// The sums over pairs of tokens, all value channels; leaves the last ones loaded.
template <class Format, class Gate>
__device__ __forceinline__ void contract_pairs(const GradientLoads<Format, Gate>& loads,
                                               const GradientShared<Format, Gate>& shared, float scale,
                                               int warp, int lane) {
  using Shared = GradientShared<Format, Gate>;
  const Shape& shape = loads.in.shape;
  const int later = warp & 3;
  const auto contract = [&](auto sums) {
    sums.clear();
    for (int begin = 0; begin < shape.value_channels; begin += Shared::layout.values) {
      if (begin > 0) {
        __syncthreads();  // everyone is done with the value channels before
        loads.load_values(shared, begin);
        commit_copies();
      }
      wait_copies<0>();
      __syncthreads();
      const int groups = min(Shared::layout.values / 16, shape.value_groups() - (begin >> 4));
#pragma unroll 1
      for (int group = 0; group < groups; ++group) sums.add(shared, 16 * group, later, lane);
    }
    sums.store(shared, scale, later, lane);
  };
  if constexpr (Shared::threads == 256) {
    if (warp < 4)
      contract(PairContractions<Format, Gate, false>());
    else
      contract(PairContractions<Format, Gate, true>());
  } else {
    contract(PairContractions<Format, Gate, false>());
    if (shape.value_channels > Shared::layout.values) {
      __syncthreads();
      loads.load_values(shared, 0);
      commit_copies();
    }
    contract(PairContractions<Format, Gate, true>());
  }
}

}  // namespace general
