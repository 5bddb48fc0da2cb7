// Sums over the rows of a 16-row tile: of gates, for the decays of chunk_keys.cuh, and of what pairs of rows
// contribute to the gradients of the gates between them.
#pragma once
#include "../device/decay.cuh"
#include "fragment.cuh"

// What a lane holds of 16 channels x 16 tokens: x[i][place] is channel lane/4 + 8 i, token element_of(place).
using Share = float[2][4];

// Sums of gates over the rows of a 16-row tile, for the lane's elements.
struct TileDecays {
  float y[2][4];                      // gates in log2 units
  float neighbour[2][2], quad[2][2];  // sums over the other pair of the quad, the other quad of eight rows
  float eight[2][2];                  // over eight rows

  template <class T, class Gate>
  __device__ __forceinline__ void load(const char* tile, int row, int column, int lane) {
    Fragment<T, Gate>::columns(y, tile, row, column, lane);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        y[i][h] = y[i][h] * log2_e, y[i][h + 2] = y[i][h + 2] * log2_e;
        const float pair = y[i][h] + y[i][h + 2];
        neighbour[i][h] = __shfl_xor_sync(0xffffffffu, pair, 1);
        const float four = pair + neighbour[i][h];
        quad[i][h] = __shfl_xor_sync(0xffffffffu, four, 2);
        eight[i][h] = four + quad[i][h];
      }
  }
  __device__ float total(int i) const {
    return eight[i][0] + eight[i][1];
  }
  // F_s or B_s of the rows, whichever their half of the block of 2 s rows asks for; s = 1, 2, 4, 8.
  template <class Pass, int s>
  __device__ __forceinline__ float exponent(int i, int place, int lane) const {
    const int h = place & 1;
    if (s == 1) return Pass::target_decays && (place >> 1) ? y[i][place] : 0.0f;
    if (s == 2) return (lane & 1) ? up_to<Pass>(i, place, lane, 0) : after(i, place, lane, 0);
    if (s == 4) return (lane & 2) ? up_to<Pass>(i, place, lane, 1) : after(i, place, lane, 1);
    return h ? up_to<Pass>(i, place, lane, 2) : after(i, place, lane, 2);
  }
  // Sums up to the row (with it where targets decay), and after it, inside its 2, 4, 8 or 16 rows (depth 0 to
  // 3).
  template <class Pass>
  __device__ __forceinline__ float up_to(int i, int place, int lane, int depth) const {
    const int h = place & 1;
    float sum = (place >> 1) ? y[i][h] + y[i][h + 2] : y[i][h];
    if constexpr (!Pass::target_decays) sum = (place >> 1) ? y[i][h] : 0.0f;
    if (depth >= 1) sum = ((lane & 1) ? neighbour[i][h] : 0.0f) + sum;
    if (depth >= 2) sum = ((lane & 2) ? quad[i][h] : 0.0f) + sum;
    if (depth >= 3) sum = (h ? eight[i][0] : 0.0f) + sum;
    return sum;
  }
  __device__ __forceinline__ float after(int i, int place, int lane, int depth) const {
    const int h = place & 1;
    float sum = (place >> 1) ? 0.0f : y[i][h + 2];
    if (depth >= 1) sum = ((lane & 1) ? 0.0f : neighbour[i][h]) + sum;
    if (depth >= 2) sum = ((lane & 2) ? 0.0f : quad[i][h]) + sum;
    if (depth >= 3) sum = (h ? 0.0f : eight[i][1]) + sum;
    return sum;
  }
};

// What is still to be summed into dg: `ends` goes to the rows from a block's start up to its own, `starts` to
// the rows after its own, inside blocks of 16 rows at first; descend() hands on what leaves the halves.
struct GatePending {
  float dg[2][4], ends[2][4], starts[2][4];

  __device__ __forceinline__ void add(int i, int place, bool second, float term) {
    if (second)
      ends[i][place] = ends[i][place] + term;
    else
      starts[i][place] = starts[i][place] + term;
  }
  // From blocks of 16 rows to 8, which the same lanes hold.
  __device__ __forceinline__ void descend_to_eight() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float later = ends[i][1] + ends[i][3], earlier = starts[i][0] + starts[i][2];
#pragma unroll
      for (int mask = 1; mask <= 2; mask *= 2) {
        later = later + __shfl_xor_sync(0xffffffffu, later, mask);
        earlier = earlier + __shfl_xor_sync(0xffffffffu, earlier, mask);
      }
      dg[i][0] = dg[i][0] + later, dg[i][2] = dg[i][2] + later;
      dg[i][1] = dg[i][1] + earlier, dg[i][3] = dg[i][3] + earlier;
    }
  }
  // From 8 rows to 4 (mask 2) or from 4 to 2 (mask 1), which neighbouring lanes hold: a first half needs the
  // ends of the second, a second half the starts of the first.
  template <int mask>
  __device__ __forceinline__ void descend(int lane) {
    const bool second = lane & mask;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float give;
        if (second)
          give = ends[i][h] + ends[i][h + 2];
        else
          give = starts[i][h] + starts[i][h + 2];
        if (mask == 2) give = give + __shfl_xor_sync(0xffffffffu, give, 1);
        const float got = __shfl_xor_sync(0xffffffffu, give, mask);
        dg[i][h] = dg[i][h] + got, dg[i][h + 2] = dg[i][h + 2] + got;
      }
  }
  // From pairs to rows; then only a row's own ends are left.
  __device__ __forceinline__ void descend_to_rows() {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        dg[i][h] = dg[i][h] + ends[i][h + 2];
        dg[i][h + 2] = dg[i][h + 2] + starts[i][h];
      }
  }
};
