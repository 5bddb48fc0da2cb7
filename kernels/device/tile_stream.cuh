// Tiles of one tensor after another, for a scan over its chunks.
#pragma once
#include "tile.cuh"

// The tiles of one column of a tensor, one after the other, `ahead` elements apart: loaded as by load_tile,
// with all that is the same for every tile computed once. Where rows go back in time the first tile may lack
// its first ones: those are `missing`.
template <class T, int threads>
class TileStream {
  using Bits = typename T::Bits;
  static constexpr int per_piece = 16 / int(sizeof(Bits)), pieces = T::columns / per_piece,
                       step = threads / pieces;
  static_assert(step <= 16 ? 16 % step == 0 : step % 16 == 0, "as in load_tile");

 public:
  __device__ __forceinline__ TileStream(const Bits* first, i64 row_stride, i64 ahead, int count, bool vector)
      : next_(first), row_stride_(row_stride), ahead_(ahead), count_(count), vector_(vector) {
    if (!vector) return;
    row_ = int(threadIdx.x) / pieces;
    const int column = int(threadIdx.x) % pieces * per_piece;
    live_ = column < count;
    place_ = T::offset(row_, column);
    next_ += row_ * row_stride + column;
  }
  // Starts loading the next tile, of which `rows` are there.
  __device__ __forceinline__ void load(char* tile, int rows, int missing = 0) {
    if (vector_) {
      const Bits* piece = next_ + missing * row_stride_;
      char* const to = tile + place_;
      if (live_ && rows == 64) {
#pragma unroll
        for (int i = 0; i < 64 / step; ++i, piece += step * row_stride_)
          copy_async(to + T::offset(i * step, 0), piece, 16);
      } else {
#pragma unroll
        for (int i = 0; i < 64 / step; ++i, piece += step * row_stride_)
          copy_async(to + T::offset(i * step, 0), piece, live_ && row_ + i * step < rows ? 16 : 0);
      }
    } else {
      load_tile<T, threads>(tile, next_ + missing * row_stride_, row_stride_, rows, count_, false);
    }
    next_ += ahead_;
  }

 private:
  const Bits* next_;  // vector: the thread's first piece; else the tile's first element
  i64 row_stride_, ahead_;
  int count_, row_ = 0, place_ = 0;
  bool vector_, live_ = false;
};
