// Walking recorded events back from a bad output element.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/vm/recording.h"

namespace assay {

struct WalkBack {
  int32_t origin = -1;  ///< the earliest birth, or the earliest instruction that met a value from outside
  std::vector<int32_t> path;  ///< events from the origin to the one behind the output element, both included
  /// The origin took its non-finite operand from an input, a literal or unwritten memory.
  bool from_outside = false;
};

/// All events behind `last`; the origin is the earliest one (in the order of execution) that makes NaN from
/// operands none of which is NaN or Inf from finite ones, or meets a NaN that no instruction made. Where
/// there is none, the earliest one that meets an Inf that no instruction made.
WalkBack walk_back(const vm::Recording&, int32_t last);

}  // namespace assay
