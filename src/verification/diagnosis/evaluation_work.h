// What evaluating an operator's formula takes, counted (counted_work.h).
#pragma once
#include "reference/operator.h"

namespace assay {

/// By its sizes and directions; gradients take more than outputs.
void count_evaluation(const Operator&, const Problem&, bool forward, bool backward);

}  // namespace assay
