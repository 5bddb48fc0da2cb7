// A warp's 16 x 16 blocks, transposed: rows become places. What stood at element_of(place) of a row of `x`
// stands in row lane/4 + 8 i of the result, at the place of element_of(.) = that row; where the lane's places
// are its neighbours 4 (lane%4) + place instead, in the row that channel_of_row says.
#pragma once
#include "../channel/fragment.cuh"
#include "../device/operand.cuh"
#include "chunk_layout.h"

namespace rule {

// The key channel, of 16, that a row of a block is which has been transposed from neighbours: what the state
// has in an accumulator's column is then at the place of that channel in operands that hold 4 (lane%4) +
// place.
__device__ __forceinline__ int channel_of_row(int row) {
  return 4 * ((row & 7) >> 1) + (row >> 3) + 2 * (row & 1);
}

// Where a warp of a block of 4 transposes 16 x 16 elements of 16 bits: rows of 32 bytes, 16 apart.
constexpr int turn_bytes = assay::delta::turns_bytes / 4;

// r[2 l + h]: rows lane/4 + 8 h, columns 2 (lane%4) + 8 l and the next one, as bf16 operands have them in
// either order of places; the same of the transpose.
__device__ __forceinline__ void transpose(u32 (&r)[4], int lane) {
  __shared__ __align__(16) char turns[4][turn_bytes];
  char* const turn = turns[threadIdx.x >> 5];
  __syncwarp();  // what was there has been read
#pragma unroll
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<u32*>(turn + ((lane >> 2) + 8 * (i & 1)) * 48 + 16 * (i >> 1) + 4 * (lane & 3)) = r[i];
  __syncwarp();
  load_matrices_transposed(r, turn + ((lane & 7) + 8 * (lane >> 4)) * 48 + 16 * ((lane >> 3) & 1));
}

// The transpose of x to memory as an operand. `neighbours`: of places; `square`: the warp's.
template <class Operand, bool neighbours>
__device__ __forceinline__ void store_transposed(char* block, const float (&x)[2][4], float (&square)[16][17],
                                                 int lane) {
  if constexpr (sizeof(Operand) == sizeof(OperandBf16)) {
    Operand turned = Operand::of(x);
    transpose(turned.r, lane);
    turned.store(block, lane);
  } else {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i)
      square[(lane >> 2) + 8 * (i >> 2)][neighbours ? 4 * (lane & 3) + (i & 3) : element_of(i & 3, lane)] =
          x[i >> 2][i & 3];
    __syncwarp();
    float y[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = (lane >> 2) + 8 * (i >> 2);
      y[i >> 2][i & 3] = square[element_of(i & 3, lane)][neighbours ? channel_of_row(row) : row];
    }
    Operand::store_values(block, lane, y);
    __syncwarp();
  }
}

}  // namespace rule
