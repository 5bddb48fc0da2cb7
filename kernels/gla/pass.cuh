// In which direction a kernel goes through time. The backward pass is the forward one on reversed tokens: G =
// dL/dS obeys the recurrence of S with q for k and do for v, and dv that of o with k for q. Only the gate
// differs: between a source and a later target lie the gates after the source up to the target's, in reversed
// time the source's own up to the one before the target.
#pragma once
#include "../gated/instruction.cuh"

struct Forward {
  static constexpr bool backward = false, exclusive = false;
};
struct Backward {
  static constexpr bool backward = true, exclusive = false;
};
// Forward, but read out before the token's own write and decay (rwkv6); a bonus takes their place.
struct ExclusiveForward {
  static constexpr bool backward = false, exclusive = true;
};

// Rows of a chunk of tokens: row 0 is the first token, or the last one backward.
template <class Pass>
struct ChunkRows {
  static __device__ i64 first_token(i64 chunk_begin, int rows) {
    return Pass::backward ? chunk_begin + rows - 1 : chunk_begin;
  }
  // From a row to the next, given the distance of two tokens.
  static __device__ i64 stride(i64 token_stride) { return Pass::backward ? -token_stride : token_stride; }
};
