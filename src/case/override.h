// Single-element overrides of a case: "g[0,16,0,3]=-90".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay {

struct Override {
  std::string argument;
  std::vector<int64_t> index;
  double value = 0;
};

/// Accepts "g[0,16,0,3]=-90", and "inf", "-inf", "nan" as values. Throws BadInput.
Override parse_override(const std::string& text);
/// Sets the element, rounded once to the tensor's format. Throws BadInput where the argument or the element
/// is not there.
void apply_override(const Override&, TensorMap&);

}  // namespace assay
