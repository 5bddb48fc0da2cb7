// The arguments of a launch file: scalars, pointers, structs with C's layout, tensor maps.
#pragma once
#include <map>
#include <string>

#include "src/base/document/expression.h"
#include "src/base/document/json_node.h"
#include "src/base/program/argument.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// `tensors`: those that a pointer may name, for their shapes. Throws BadInput naming the place.
Argument read_launch_argument(const JsonNode&, const ExpressionScope&,
                              const std::map<std::string, Tensor>& tensors);

}  // namespace assay
