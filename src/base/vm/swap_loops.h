// Loops around a compare-and-swap: atomics that the hardware does not have, written out (CUDA's own
// atomicAdd of bf16 and of doubles on older targets among them).
#pragma once
#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {

/// By op of the code.
struct SwapLoops {
  /// A load of what a compare-and-swap then expects to find: it may be plain, for the swap finds out whether
  /// the value still stands.
  std::vector<bool> confirmed;
  /// A compare-and-swap of what it expects for a floating-point sum of that, or a load confirmed by one.
  std::vector<bool> sums;
};
SwapLoops swap_loops_of(const Code&);

}  // namespace assay::vm
