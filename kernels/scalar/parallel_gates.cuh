// The gradient of the gates in the parallel form, from sums that parallel_rows.cuh made. With X_IJ the sum of
// all pairs (j, i), i in block I, j in block J < I, where S_0 counts as a block before the first and dS_T as
// one after the last,
//   dg_t = sum_{J < B < I} X_IJ  +  sum_{i>=t} R_i + sum_{j<t} C_j  +  the pairs inside B,
// B the token's own block, R_i the sum of i's pairs with earlier blocks, C_j of j's with later ones. All
// terms are products along paths; nothing is ever subtracted.
#pragma once
#include "parallel_rows.cuh"

// Sum over the block's threads; `of_warps` may be written again after the next barrier.
__device__ __forceinline__ float sum_over_block(float x, float (&of_warps)[4]) {
  x = GateTerms::over_rows(GateTerms::over_quad(x));
  if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x >> 5] = x;
  __syncthreads();
  return (of_warps[0] + of_warps[1]) + (of_warps[2] + of_warps[3]);
}

// earlier, later: what the launches of dq and dk left.
template <class Gate>
__device__ __forceinline__ void parallel_gates(const typename Gate::Bits* gates, const float* initial_state,
                                               const float* dfinal_state, ParallelTerms earlier,
                                               ParallelTerms later, typename Gate::Bits* gate_gradients,
                                               const i64* blocks, const i64* sequences, Shape shape) {
  __shared__ GateTerms terms;
  __shared__ float of_warps[3][4];
  const int head = int(blockIdx.x) % shape.heads, block = int(blockIdx.x) / shape.heads;
  const SequenceBlock at(blocks, sequences, block);
  const int slices = (shape.key_channels + 63) / 64, rows = at.rows(at.index), thread = int(threadIdx.x);
  const i64 first_slot = i64(block - at.index);  // of the sequence
  const auto slot = [&](int b) { return ((first_slot + b) * shape.heads + head) * slices; };

  float sum = 0.0f;
  const i64 per_block = i64(slices) * (at.index + 1), pairs = (at.count - 1 - at.index) * per_block;
#pragma unroll 1
  for (i64 i = thread; i < pairs; i += 128) {
    const int from = at.index + 1 + int(i / per_block), part = int(i % per_block);
    const int slice = part / (at.index + 1), to = part % (at.index + 1);
    sum = sum + earlier.blocks[(slot(from) + slice) * earlier.stride + to];
  }
#pragma unroll 1
  for (i64 i = thread; i < i64(slices) * at.index; i += 128)
    sum = sum + later.blocks[(slot(int(i / slices)) + i % slices) * later.stride];
  float across = sum_over_block(sum, of_warps[0]);
  if (initial_state != nullptr && dfinal_state != nullptr) {
    const i64 size = i64(shape.key_channels) * shape.value_channels,
              state = (i64(at.sequence) * shape.heads + head) * size;
    float product = 0.0f, log_decay = 0.0f;
#pragma unroll 1
    for (i64 i = thread; i < size; i += 128)
      product = fused(initial_state[state + i], dfinal_state[state + i], product);
#pragma unroll 1
    for (i64 t = thread; t < at.tokens; t += 128)
      log_decay =
          log_decay +
          Gate::decode(gates[Gate::width == GateWidth::head ? head : (at.first + t) * shape.heads + head]);
    const float whole = sum_over_block(log_decay, of_warps[1]);
    across = across + sum_over_block(product, of_warps[2]) * power_of_two(whole);
  }

  const i64 token = at.begin(at.index) * shape.heads + head;
  if (thread < 64) {
    float ends = 0.0f, starts = 0.0f;
    for (int slice = 0; slice < slices && thread < rows; ++slice) {
      const i64 place = (token + i64(thread) * shape.heads) * slices + slice;
      ends = ends + earlier.rows[place], starts = starts + later.rows[place];
    }
    terms.ends[thread] = ends, terms.starts[thread] = starts;
  }
  __syncthreads();
  if (thread < rows) {
    const i64 place = token + i64(thread) * shape.heads;
    gate_gradients[place] = Gate::encode((terms.of_ends(thread) + later.own[place]) + across);
  }
}
