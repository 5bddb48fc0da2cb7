// In which direction a kernel goes through time. The backward pass is the forward one on reversed tokens: G =
// dL/dS obeys the recurrence of S with q for k and do for v, and dv that of o with k for q. Only the gate
// differs: between a source and a later target lie the gates after the source up to the target's, in reversed
// time the source's own up to the one before the target.
#pragma once
#include "../device/instruction.cuh"

// Which gates decay the way from a source to a later target, both ends of it: the source's own, the target's
// own. Read out before the token's own write and decay (`exclusive`, rwkv6) neither does, in both directions
// of time, and a bonus weighs the token itself.
struct Forward {
  static constexpr bool backward = false, exclusive = false;
  static constexpr bool source_decays = false, target_decays = true;
};
struct Backward {
  static constexpr bool backward = true, exclusive = false;
  static constexpr bool source_decays = true, target_decays = false;
};
struct ExclusiveForward {
  static constexpr bool backward = false, exclusive = true;
  static constexpr bool source_decays = false, target_decays = false;
};
struct ExclusiveBackward {
  static constexpr bool backward = true, exclusive = true;
  static constexpr bool source_decays = false, target_decays = false;
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
