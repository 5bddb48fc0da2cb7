// Parts of tensors by named axis: what the metamorphic properties feed a kernel with.
#pragma once
#include <cstdint>
#include <string_view>

#include "src/base/tensor/tensor.h"

namespace assay {

/// Position of an axis, or -1.
int axis_position(const Tensor&, std::string_view axis);
/// Elements [begin, end) along `axis`; the whole tensor where it has no such axis.
Tensor slice(const Tensor&, std::string_view axis, int64_t begin, int64_t end);
/// Joins two parts along `axis`; the other axes must agree.
Tensor concatenate(const Tensor& first, const Tensor& second, std::string_view axis);
/// Reverses the order along `axis`; unchanged where there is no such axis.
Tensor reversed(const Tensor&, std::string_view axis);
/// slice() of every tensor that has the axis.
TensorMap slice_all(const TensorMap&, std::string_view axis, int64_t begin, int64_t end);

}  // namespace assay
