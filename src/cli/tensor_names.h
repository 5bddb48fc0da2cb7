// --map: tensors of a file under the names that an operator gives its inputs.
#pragma once
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay::cli {

/// "q=query_states": the file's tensor query_states is the input q. Tensors that no input is named after
/// stay.
TensorMap renamed(TensorMap tensors, const std::vector<std::string>& map, const std::string& source);

}  // namespace assay::cli
