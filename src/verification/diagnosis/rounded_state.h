// An operator whose state passes through a narrower format.
#pragma once
#include "src/verification/diagnosis/prediction.h"

namespace assay {

/// Forward outputs where every state is rounded by `rounded` after each `chunk` tokens and at the end,
/// counted from its sequence's start. The kernel's own roundings come before: what is predicted is near, not
/// within a bound.
std::optional<Prediction> with_rounded_state(const FailingRun&, int64_t chunk,
                                             const std::function<double(double)>& rounded);

}  // namespace assay
