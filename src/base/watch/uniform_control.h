// Whether all threads of a block come to the same barriers.
#pragma once
#include <vector>

#include "src/base/watch/rehearsal.h"

namespace assay::watch {

/// Of the instructions in `part`, with the barriers among and directly behind them: where threads may part,
/// they meet at one barrier or come to none. `is_barrier`: by instruction.
bool threads_meet(const FunctionView&, const std::vector<bool>& part, const std::vector<bool>& is_barrier);

}  // namespace assay::watch
