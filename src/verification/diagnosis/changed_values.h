// Of a line that explains what is wrong, the values that would have to be others, and what they would be.
#pragma once
#include <vector>

#include "src/base/tensor/tensor.h"
#include "src/verification/diagnosis/explained_line.h"

namespace assay {

/// Of one operation of a line.
struct ChangedValues {
  std::vector<uint32_t> instances;  ///< of the slice
  std::vector<double> now, changes;
  std::vector<uint32_t> of_operation;  ///< all of them
  double bits = 0;                     ///< bits_of what was found
  double agrees = 0;                   ///< of a value, how far rounded derivatives may tell it wrongly
};

/// Operations of the line that alone explain all that is lacking, by changes that are determined.
std::vector<ChangedValues> changed_values(const ExplainedLine&, const WrongElements&);

/// Each would have to be 0, as behind a mask that lets too much through.
bool are_undue(const ChangedValues&);

/// Each would have to be another value: of the operation, as at another step; where it reads an input of
/// those (null: not a tensor); or of what the statements made that wrote what it reads.
bool are_displaced(const ChangedValues&, const vm::ValueSlice&, const std::vector<const Tensor*>& inputs);

}  // namespace assay
