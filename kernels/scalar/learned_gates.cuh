// Which gates have a gradient: the kernels that make gradients hold no code for those of others.
#pragma once
#include "../device/gate.cuh"

// A constant per head that the operator sets.
struct FixedHeadGate : HeadGate {};

template <class Gate>
constexpr bool is_learned = has_decay<Gate>;
template <>
constexpr bool is_learned<FixedHeadGate> = false;
