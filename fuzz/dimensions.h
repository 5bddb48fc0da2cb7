// The dimensions of a case, each drawn by itself: lengths, heads, widths, formats, decays, values, scale,
// parameters, direction, optional inputs, layouts. What earlier cases covered steers.
#pragma once
#include "fuzz/generator.h"

namespace assay {

/// What a case is drawn for.
struct Target {
  const Kernel& kernel;
  const Operator& op;
  const Feedback& feedback;
};

/// All dimensions drawn, in a fixed order; they need not agree yet. In a RapidCheck generator only, as all
/// below.
Case fresh(const Target&);
/// A corpus case, the newer half preferred, with a new seed and one or two dimensions drawn again.
Case redrawn(const Target&);
void draw_decay(Case&, const Target&);

}  // namespace assay
