// Two runs against each other, bit for bit, all NaN taken as equal.
#pragma once
#include <optional>
#include <string>

#include "src/base/program/outcome.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// What is wrong, in one line; none: nothing.
using Failure = std::optional<std::string>;

/// "trap: out-of-bounds: ... at kernels/gla/chunk.cu:142".
std::string trap_text(const Trap&);
/// The first element that differs, with both values.
Failure same_bits(const Tensor& expected, const Tensor& got);
/// Every tensor of `expected` against that of its name; others are not looked at.
Failure same_bits(const TensorMap& expected, const TensorMap& got);
/// Neither run trapped, and their outputs are the same.
Failure same_outcome(const Outcome& expected, const Outcome& got);

}  // namespace assay
