// How wide bounds are beside the values that they are of: what errors they let pass. Needs no kernel to run.
#pragma once
#include "reference/operator.h"

namespace assay {

struct BoundWidth {
  /// Median of the bounds / root mean square of the exact values: unlike a largest ratio it is not told by
  /// the few elements whose bounds are tight, as a sequence's first tokens are. At 1 zeros mostly pass.
  double median = 0;
  /// Least d for which a kernel that is right but for a factor 1 + d is found out: some element lies beyond
  /// its bound, whatever its rounding to the output's format does. Infinite where all are zero.
  double caught = 0;
};

/// Elements without a finite bound take no part; 0 where there are none.
BoundWidth bound_width(const ReferenceOutput&);

}  // namespace assay
