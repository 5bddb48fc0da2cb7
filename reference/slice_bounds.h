// How far a kernel of known arithmetic may be from one slice's exact results.
#pragma once
#include <vector>

namespace assay {

struct ElementBound {
  double companion = 0;  ///< sum of the absolute values of the terms
  double bound = 0;      ///< of |kernel - exact|, the storing of the result included
  double underflow = 0;  ///< the part of it that is absolute
};

/// One list per argument, in the order of the specifications.
using SliceBounds = std::vector<std::vector<ElementBound>>;

}  // namespace assay
