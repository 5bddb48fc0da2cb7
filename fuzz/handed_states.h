// What one run hands to another: the states it leaves, and the gradients of those it started from.
#pragma once
#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/case/case.h"

namespace assay {

/// The states a run leaves, as those a run starts from: "final_state" -> "initial_state".
TensorMap states_as_inputs(const Operator&, const TensorMap& outputs);
/// Their gradients where a run starts, as cotangents of a run that ends there.
TensorMap gradients_as_cotangents(const Operator&, const TensorMap& outputs);
/// Without the gradients of inputs that tokens and sequences share: sums over them have other bits where they
/// come in another order, or not all of them.
TensorMap unshared(TensorMap tensors);
/// With all of the operator's initial states, or none.
Case with_state(Case, const Operator&, bool present);

}  // namespace assay
