// Inputs from a file instead of drawn ones: sizes are read from their shapes, and every shape is held against
// the operator's axes.
#pragma once
#include <string>

#include "reference/operator.h"
#include "src/case/case.h"
#include "src/tensor/tensor.h"

namespace assay {

struct GivenInputs {
  Case case_;        ///< sizes, formats, packing and absent inputs as the tensors say
  TensorMap inputs;  ///< axes named
};

/// `base` gives what tensors cannot (kernel, scale, cu_seqlens where no tensor of that name is there).
/// `source` is for messages. Throws BadInput for a missing or unknown tensor, a shape that breaks the
/// operator's contract, formats that do not go together.
GivenInputs fit_inputs(const Case& base, const Operator&, TensorMap raw, const std::string& source);

}  // namespace assay
