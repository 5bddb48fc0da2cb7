// What a block of chunk_hopper.cuh works on: its tensors, its shared memory, and the warps that fill it.
#pragma once
#include "../device/ring.cuh"
#include "../device/shape.cuh"
#include "../device/warpgroup.cuh"
#include "chunk_rows.cuh"
#include "hopper_layout.h"
#include "state_scan.cuh"

// What gradients of learned gates take: copies of states [chunk][H][ceil(values/64)][ceil(keys/64)] of
// KeptState; `partner` [token, H, values], with whose rows those of the result are multiplied; dots
// [H][ceil(values/64)][tokens].
struct HopperTerms {
  uint4* states;
  const Bf16::Bits* partner;
  float* dots;
  i64 tokens;
};

// The tensors of a launch: tensor maps of rows and keys [token, H, keys], of values [token, H, values], the
// channels of each; the result [token, H, values]; states before and after (or null) [N, H, ..], whose
// element (key, value) is at key * key_stride + value * value_stride.
struct HopperTensors {
  const TensorMap *rows, *keys, *values;
  int key_channels, value_channels;
  Bf16::Bits* result;
  const float* initial_state;
  float* final_state;
  int key_stride, value_stride;
  HopperTerms terms;
};

// A block's part of that, and where it lies in shared memory.
template <int key_tiles, int columns, bool later>
struct HopperBlock {
  static constexpr assay::scalar::HopperLayout layout{key_tiles, columns};
  static constexpr int stages = layout.stages;
  using KeyTile = SwizzledTile<64>;
  using ValueTile = SwizzledTile<columns>;

  struct Decays {
    GradientDecays pairs;
    ChunkWeights weights;
    __device__ const float* of_rows() const { return later ? pairs.to_end : pairs.from_start; }
  };
  static_assert(sizeof(Decays) <= assay::scalar::HopperLayout::sums);
  static_assert(KeyTile::bytes == assay::scalar::HopperLayout::tile);

  const HopperTensors& tensors;
  int value_begin, head, heads, sequence;
  i64 first, first_chunk;
  int tokens, steps;
  char* shared;
  Ring<stages>& chunks;
  Ring<2>& states;

  // Of the chunk that a step takes: its first token in the sequence, and its tokens.
  __device__ int token_of(int step) const { return 64 * (later ? steps - 1 - step : step); }
  __device__ int rows_of(int step) const { return min(64, tokens - token_of(step)); }
  __device__ char* stage(int step) const { return shared + step % stages * layout.stage_bytes; }
  __device__ char* rows(int step, int tile) const { return stage(step) + tile * KeyTile::bytes; }
  __device__ char* keys(int step, int tile) const { return rows(step, key_tiles + tile); }
  __device__ char* values(int step) const { return stage(step) + layout.values_offset; }
  __device__ Decays& decays(int step) const {
    return *reinterpret_cast<Decays*>(stage(step) + layout.sums_offset);
  }
  __device__ char* state(int step, int tile) const {
    return shared + layout.states_offset + (step & 1) * layout.state_bytes + tile * ValueTile::bytes;
  }
  // Tiles hold what follows the sequence too: rows of keys and values beyond its end become zeros, by the two
  // warpgroups that use them (`half`: 0, 1).
  __device__ __forceinline__ void clear_beyond_end(int step, int half) const {
    const int rows = rows_of(step);
    if (rows == 64) return;
    clear<ValueTile>(values(step), rows, half);
#pragma unroll
    for (int tile = 0; tile < key_tiles; ++tile) clear<KeyTile>(keys(step, tile), rows, half);
    fence_async_proxy();
    meet<1, 256>();
  }
  // Where the state's element of a key and a value of the block is, if there is one.
  __device__ __forceinline__ bool has(int key, int value) const {
    return key < tensors.key_channels && value_begin + value < tensors.value_channels;
  }
  __device__ __forceinline__ i64 place(int key, int value) const {
    return i64(sequence * heads + head) * tensors.key_channels * tensors.value_channels +
           key * tensors.key_stride + (value_begin + value) * tensors.value_stride;
  }

 private:
  // The first row is a token's: what may be behind the sequence decides how often a thread stores at most.
  template <class T>
  static __device__ __forceinline__ void clear(char* tile, int rows, int half) {
    constexpr int stride = 16 * 256, times = (T::bytes - T::row_bytes + stride - 1) / stride;
    const int first = rows * T::row_bytes + 16 * (128 * half + int(threadIdx.x) % 128);
#pragma unroll
    for (int at = 0; at < times * stride; at += stride)
      if (first + at < T::bytes) *reinterpret_cast<uint4*>(tile + first + at) = make_uint4(0, 0, 0, 0);
  }
};

// By one thread: tiles of each chunk, once the ring has place for them.
template <int key_tiles, int columns, bool later>
__device__ __forceinline__ void copy_chunks(const HopperBlock<key_tiles, columns, later>& block) {
  using Block = HopperBlock<key_tiles, columns, later>;
  const HopperTensors& t = block.tensors;
  for (int step = 0; step < block.steps; ++step) {
    block.chunks.wait_until_empty(step);
    u64* const full = &block.chunks.full[step % Block::stages];
    arrive_expecting(full, 2 * key_tiles * Block::KeyTile::bytes + Block::ValueTile::bytes);
    const int token = int(block.first) + block.token_of(step);
#pragma unroll
    for (int tile = 0; tile < key_tiles; ++tile) {
      copy_box(block.keys(step, tile), t.keys, 64 * tile, block.head, token, full);
      copy_box(block.rows(step, tile), t.rows, 64 * tile, block.head, token, full);
    }
    copy_box(block.values(step), t.values, block.value_begin, block.head, token, full);
  }
}

// By one of two warps: sums of every other chunk's gates, which are loaded two chunks earlier.
template <class Gate, int key_tiles, int columns, bool later>
__device__ __forceinline__ void sum_gates(const HopperBlock<key_tiles, columns, later>& block,
                                          const typename Gate::Bits* gates, int first_step, int lane) {
  constexpr int each = assay::scalar::hopper_result_groups;
  float y[2];
  const auto load = [&](int step) {
    const int token = block.token_of(step), rows = step < block.steps ? block.rows_of(step) : 0;
    load_gates<Gate>(y, gates, block.first + token, rows, block.head, block.heads, lane);
  };
  load(first_step);
  for (int step = first_step; step < block.steps; step += each) {
    block.chunks.wait_until_empty(step);
    auto& decays = block.decays(step);
    decays.pairs.fill(y, lane);
    decays.weights.template fill<later>(y, lane);
    block.chunks.filled(step, lane);
    load(step + each);
  }
}
