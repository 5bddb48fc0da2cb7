// The softmax of ../gsa/slots.cuh and its gradient where one block has all slots of its 64 tokens: at most
// 64, in a tile of shared memory. Two lanes of a warp have a token, one the even slots and one the odd ones,
// or of eight warps four lanes; sums are SlotRow's, addition by addition.
#pragma once
#include "../device/decay.cuh"
#include "../device/tile.cuh"

// Even slots first, odd ones 36 columns on: no bank is hit twice, by writers of eight neighbouring slots or
// by readers of four even ones.
struct SlotTile {
  using T = Tile<Fp32, 64>;
  static constexpr int most_slots = 64;

  static __device__ float& at(char* tile, int token, int slot) {
    return *reinterpret_cast<float*>(tile + T::offset(token, (slot >> 1) + 36 * (slot & 1)));
  }
};

// Slots 2 i + odd of the lane's token, of `lanes` = 2; of four lanes those of even i or of odd i: all but the
// last additions stay in a lane.
template <int lanes>
struct SlotsOfLane {
  static constexpr int count = SlotTile::most_slots / lanes;
  int token, odd, part, slots;  // part: i % 2 of four lanes, else 0

  __device__ SlotsOfLane(int slots, int warp, int lane)
      : token(lanes == 2 ? 16 * warp + (lane & 15) : 8 * warp + (lane & 7)),
        odd(lane >> 4),
        part(lanes == 2 ? 0 : (lane >> 3) & 1),
        slots(slots) {}

  __device__ int slot(int i) const { return lanes * i + 2 * part + odd; }
  __device__ bool live(int i) const { return slot(i) < slots; }
  __device__ __forceinline__ void load(float (&x)[count], const char* tile) const {
    const float4* row = reinterpret_cast<const float4*>(tile + SlotTile::T::offset(token, 36 * odd));
#pragma unroll
    for (int i = 0; i < SlotTile::most_slots / 8; ++i) {
      const float4 four = row[i];
      if constexpr (lanes == 2)
        x[4 * i] = four.x, x[4 * i + 1] = four.y, x[4 * i + 2] = four.z, x[4 * i + 3] = four.w;
      else
        x[2 * i] = part ? four.y : four.x, x[2 * i + 1] = part ? four.w : four.z;
    }
  }
  // Slots that are not there take `value`.
  __device__ __forceinline__ void fill(float (&x)[count], float value) const {
    if (slots < SlotTile::most_slots)
#pragma unroll
      for (int i = 0; i < count; ++i) x[i] = live(i) ? x[i] : value;
  }
  // Of all slots, given those of 32 slots apart together.
  static __device__ __forceinline__ float sum_of(float (&x)[count / 2]) {
#pragma unroll
    for (int apart = count / 4; apart >= 1; apart /= 2)
#pragma unroll
      for (int i = 0; i < count / 4; ++i)
        if (i < apart) x[i] = x[i] + x[i + apart];
    if (lanes == 4) x[0] = x[0] + __shfl_xor_sync(0xffffffffu, x[0], 8);
    return x[0] + __shfl_xor_sync(0xffffffffu, x[0], 16);
  }
  static __device__ __forceinline__ float larger(float a, float b) {
    return b > a ? b : a;
  }
  static __device__ __forceinline__ float largest_of(const float (&x)[count]) {
    float most[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i) most[i] = larger(x[i], x[i + count / 2]);
#pragma unroll
    for (int apart = count / 4; apart >= 1; apart /= 2)
#pragma unroll
      for (int i = 0; i < count / 4; ++i)
        if (i < apart) most[i] = larger(most[i], most[i + apart]);
    if (lanes == 4) most[0] = larger(most[0], __shfl_xor_sync(0xffffffffu, most[0], 8));
    return larger(most[0], __shfl_xor_sync(0xffffffffu, most[0], 16));
  }

  // To the token's slots from `to` on. `vector`: rows are 16-byte aligned and slots a multiple of 8.
  template <class Format>
  __device__ __forceinline__ void store(typename Format::Bits* to, const float (&x)[count], bool live_token,
                                        bool vector) const {
    if constexpr (sizeof(typename Format::Bits) == 2) {
      if (vector) return store_pairs(to, x, live_token);
    }
    if (live_token)
#pragma unroll
      for (int i = 0; i < count; ++i)
        if (live(i)) to[slot(i)] = Format::encode(x[i]);
  }

 private:
  // The first 32 slots go out from lanes of even ones, the others from the others; of four lanes the first or
  // last 16 of them.
  __device__ __forceinline__ void store_pairs(unsigned short* to, const float (&x)[count],
                                              bool live_token) const {
    u32 pairs[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      const u32 own = to_bf16_pair(x[i], x[i + count / 2]);
      const u32 other = __shfl_xor_sync(0xffffffffu, own, 16);
      pairs[i] = odd ? (other >> 16) | (own & 0xffff0000u) : (own & 0xffffu) | (other << 16);
    }
    if constexpr (lanes == 4) {  // these are every second pair
      u32 all[count / 2];
#pragma unroll
      for (int i = 0; i < count / 4; ++i) {
        const u32 kept = part ? pairs[i + count / 4] : pairs[i],
                  given = part ? pairs[i] : pairs[i + count / 4];
        const u32 got = __shfl_xor_sync(0xffffffffu, given, 8);
        all[2 * i] = part ? got : kept, all[2 * i + 1] = part ? kept : got;
      }
      store_run(to, 32 * odd + 16 * part, all, live_token);
    } else {
      store_run(to, 32 * odd, pairs, live_token);
    }
  }
  __device__ __forceinline__ void store_run(unsigned short* to, int first, const u32 (&pairs)[count / 2],
                                            bool live_token) const {
    uint4* row = reinterpret_cast<uint4*>(to + first);
#pragma unroll
    for (int i = 0; i < count / 8; ++i)
      if (live_token && first + 8 * i < slots)
        row[i] = make_uint4(pairs[4 * i], pairs[4 * i + 1], pairs[4 * i + 2], pairs[4 * i + 3]);
  }
};

// p = softmax(y) along the slots. Exponents are differences to the largest y: none is above 0.
template <class Weight, class LaneSlots>
__device__ __forceinline__ void softmax_of_tile(const LaneSlots& lane, const char* y,
                                                typename Weight::Bits* p, bool live_token, bool vector) {
  float x[LaneSlots::count], sums[LaneSlots::count / 2];
  lane.load(x, y);
  lane.fill(x, -0x1.fffffep+127f);
  const float largest = LaneSlots::largest_of(x);
  lane.fill(x, largest);
#pragma unroll
  for (int i = 0; i < LaneSlots::count; ++i) x[i] = power_of_two((x[i] - largest) * log2_e);
  lane.fill(x, 0.0f);
#pragma unroll
  for (int i = 0; i < LaneSlots::count / 2; ++i) sums[i] = x[i] + x[i + LaneSlots::count / 2];
  const float inverse = __frcp_rn(LaneSlots::sum_of(sums));
#pragma unroll
  for (int i = 0; i < LaneSlots::count; ++i) x[i] = x[i] * inverse;
  lane.template store<Weight>(p, x, live_token, vector);
}

// dy = p (dp - p . dp); p in a tile `PTile` of shared memory.
template <class PTile, class Weight, class LaneSlots>
__device__ __forceinline__ void softmax_gradient_of_tile(const LaneSlots& lane, const char* p, const char* dp,
                                                         typename Weight::Bits* dy, bool live_token,
                                                         bool vector) {
  constexpr int half = LaneSlots::count / 2;
  float weight[LaneSlots::count], gradient[LaneSlots::count], sums[half];
  lane.load(gradient, dp);
#pragma unroll
  for (int i = 0; i < LaneSlots::count; ++i)
    weight[i] = Weight::decode(
        *reinterpret_cast<const typename Weight::Bits*>(p + PTile::offset(lane.token, lane.slot(i))));
#pragma unroll
  for (int i = 0; i < half; ++i)
    sums[i] = fused(weight[i + half], gradient[i + half], fused(weight[i], gradient[i], 0.0f));
  const float mean = LaneSlots::sum_of(sums);
#pragma unroll
  for (int i = 0; i < LaneSlots::count; ++i) weight[i] = weight[i] * (gradient[i] - mean);
  lane.template store<Weight>(dy, weight, live_token, vector);
}
