// Inputs from a file instead of drawn ones: sizes are read from their shapes, and every shape is held against
// the operator's axes.
#pragma once
#include <string>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/case/case.h"

namespace assay {

struct GivenInputs {
  Case case_;          ///< sizes, formats, packing and absent inputs as the tensors say
  TensorMap inputs;    ///< axes named
  TensorMap expected;  ///< outputs that the file holds beside them, axes named: what it says that they are
  /// Lines for people: tensors that the file holds in another order (src/case/held_order.h).
  std::vector<std::string> notes;
};

/// What a file for a run of this case's direction may hold of its results: outputs, gradients of all inputs.
std::vector<ArgumentSpec> possible_outputs(const Case&, const Operator&);

/// `base` gives what tensors cannot (kernel, scale, cu_seqlens where no tensor of that name is there).
/// `source` is for messages, `heads` the number of heads where a caller knows it. Throws BadInput for a
/// missing or unknown tensor, a shape that breaks the operator's contract, formats that do not go together.
/// Tensors named after outputs of the operator, in the case's direction, are what is expected of it.
GivenInputs fit_inputs(const Case& base, const Operator&, TensorMap raw, const std::string& source,
                       int64_t heads = 0);

}  // namespace assay
