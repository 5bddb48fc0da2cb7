// What the gradients of one chunk and head are made of, whatever decays (token_gradients.cuh,
// channel_gradients.cuh).
#pragma once
#include "../device/shape.cuh"
#include "../device/tile.cuh"
#include "chunk_layout.h"

namespace rule {

// A chunk's tensors: its first token and the head, channel 0; S and D as ScanState::keep has them.
template <class Format>
struct GradientInputs {
  using Bits = typename Format::Bits;
  using KeptBits = typename StateOf<Format>::Type::Bits;
  const Bits *q, *k, *d_o;
  const KeptBits *updates, *pulls, *S, *D;
  i64 key_stride, value_stride;  // from token to token
  int rows;
  Shape shape;
};

}  // namespace rule
