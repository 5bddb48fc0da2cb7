// The final state in the parallel form: S_T = e^{G_T} S_0 + sum_j (k_j e^{G_T - G_j}) v_j^T, with no state
// between. Backward, with q for k and do for v: dS_0 = e^{G_T} dS_T + scale sum_i (q_i e^{G_i}) do_i^T. A
// block owns one sequence and head, 64 key channels (16 per warp) and 32 value channels.
#pragma once
#include "parallel_rows.cuh"
#include "state_scan.cuh"

template <class Format, class Gate, bool backward>
__device__ __forceinline__ void parallel_state(const typename Format::Bits* k, const typename Format::Bits* v,
                                               const typename Gate::Bits* gates, const float* initial_state,
                                               float* final_state, const i64* sequences, float scale,
                                               Shape shape) {
  constexpr int columns = assay::scalar::scan_columns;
  using Stage = ScanStage<Format, columns>;
  using Operand = typename OperandOf<Format>::Type;
  extern __shared__ __align__(16) char shared[];
  __shared__ ChunkWeights weights;
  __shared__ EdgeSums edge;

  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int K = shape.key_channels, V = shape.value_channels;
  const ScanBlock<columns> block(shape);
  const int value_begin = block.value, key_begin = block.key, head = block.head, sequence = block.sequence;
  const i64 first = sequences[3 * i64(sequence)], tokens = sequences[3 * i64(sequence) + 1];
  const i64 state_base = (i64(sequence) * shape.heads + head) * K;
  const int count = int((tokens + 63) / 64);

  StateTile<columns / 16> sum;
  sum.for_each(lane, [](float& s, int, int) { s = 0.0f; });
  float between = 0.0f;
#pragma unroll 1
  for (int step = 0; step < count; ++step) {
    const int at = backward ? step : count - 1 - step;
    const int rows = int(min(i64(64), tokens - 64 * i64(at)));
    const i64 token = (first + 64 * i64(at)) * shape.heads + head;
    __syncthreads();  // everyone is done with the last block
    load_tile<typename Stage::KeyTile, 128>(shared, k + token * K + key_begin, i64(shape.heads) * K, rows,
                                            K - key_begin, shape.vector);
    load_tile<typename Stage::ValueTile, 128>(shared + Stage::value_offset, v + token * V + value_begin,
                                              i64(shape.heads) * V, rows, V - value_begin, shape.vector);
    commit_copies();
    if (has_decay<Gate> && warp == 0) {
      float y[2];
      load_gates<Gate>(y, gates, first + 64 * i64(at), rows, head, shape.heads, lane);
      const float total = edge.fill(y, !backward, between, lane);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        weights.of_token[lane + 32 * half] = power_of_two(edge.logs[lane + 32 * half]);
      if (lane == 0) weights.state = StateDecay{1.0f, 0.0f};
      between = between + total;
    }
    wait_copies<0>();
    __syncthreads();
    sum.template advance<Gate, backward, typename Stage::KeyTile, typename Stage::ValueTile, Operand>(
        shared, shared + Stage::value_offset, 16 * warp, weights, scale, lane);
  }
  __shared__ StateDecay whole;
  if (threadIdx.x == 0) whole = StateDecay::of(between);
  __syncthreads();
  sum.for_each(lane, [&](float& s, int value, int key) {
    value += value_begin, key += key_begin + 16 * warp;
    if (key >= K || value >= V) return;
    const i64 place = (state_base + key) * V + value;
    if (initial_state == nullptr)
      final_state[place] = s;
    else if (tokens == 0)
      final_state[place] = initial_state[place];
    else
      final_state[place] =
          fused(whole.keep, initial_state[place], fused(whole.factor, initial_state[place], s));
  });
}
