// Which gates a kernel has: a compile-time policy. decode() gives a gate in log2 units; encode() stores what
// a token adds to its gate's gradient.
#pragma once
#include "decay.cuh"
#include "format.cuh"

enum class GateWidth { none, head, token, channel };

struct NoGate {
  static constexpr GateWidth width = GateWidth::none;
  using Bits = float;
  static __device__ float decode(Bits) { return 0.0f; }
  static __device__ Bits encode(float x) { return x; }
};
// One constant per head, [H], in log2 units already.
struct HeadGate {
  static constexpr GateWidth width = GateWidth::head;
  using Bits = float;
  static __device__ float decode(Bits x) { return x; }
  static __device__ Bits encode(float x) { return x; }
};
// One per token and head, [token, H].
template <class Format>
struct TokenGate {
  static constexpr GateWidth width = GateWidth::token;
  using Bits = typename Format::Bits;
  static __device__ float decode(Bits x) { return Format::decode(x) * log2_e; }
  static __device__ Bits encode(float x) { return Format::encode(x); }
};
// One per token, head and key channel, [token, H, K]; a null pointer stands for zeros.
template <class Format>
struct ChannelGate {
  static constexpr GateWidth width = GateWidth::channel;
  using Stored = Format;
  using Bits = typename Format::Bits;
  static __device__ float decode(Bits x) { return Format::decode(x) * log2_e; }
  static __device__ Bits encode(float x) { return Format::encode(x); }
};

// Whether anything decays at all.
template <class Gate>
constexpr bool has_decay = Gate::width != GateWidth::none;
