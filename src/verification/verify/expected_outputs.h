// Outputs that a file holds beside the inputs: what a model gave for them. They are held against the
// reference, and where they do not agree with it, against that of the file with two axes of equal size
// exchanged, which no shape shows.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/result/comparison.h"
#include "src/result/diagnosis.h"

namespace assay {

/// In the reference's order, those that it has. The bound is the kernel's, and the rounding of the format
/// that the file has where that is coarser than the one that the bound counts.
std::vector<OutputComparison> compare_expected(const TensorMap& expected, const ReferenceResult&);

/// Two axes of equal size that change places in some tensors, inputs or expected outputs.
struct AxisExchange {
  std::vector<std::string> tensors;
  std::string a, b;  ///< letters
};
/// Every exchange that changes the bits of each tensor that it names: in one of them, in all inputs that have
/// both axes, in these and the outputs. States first.
std::vector<AxisExchange> axis_exchanges(const TensorMap& inputs, const TensorMap& expected);
/// The tensors with those axes exchanged.
TensorMap exchanged(TensorMap, const AxisExchange&);

/// The cause "transposed" where expected outputs disagree with the reference and all agree under an exchange;
/// of less score where several exchanges do that. `evaluate` gives the reference of changed inputs; at most
/// so many seconds are spent.
std::optional<Diagnosis> transposed_tensors(const TensorMap& inputs, const TensorMap& expected,
                                            const ReferenceResult&,
                                            const std::function<ReferenceResult(const TensorMap&)>& evaluate,
                                            double seconds);

}  // namespace assay
