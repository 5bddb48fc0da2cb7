// What stands behind one output element, in the words of the source: the machine's slice, its lines, the
// inputs it read and the chain of operands that decide its size.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/value_slice.h"
#include "src/result/element_slice.h"

namespace assay {

/// None where the run traps or nothing wrote the element.
std::optional<ElementSlice> slice_element(const Program&, const TensorMap& inputs, const vm::MachineOptions&,
                                          const std::string& output, int64_t flat);

/// By instance: whether arithmetic stands behind its value, or it is an input, a literal or a parameter,
/// perhaps converted to another format.
std::vector<bool> computed_instances(const vm::ValueSlice&);

/// Index of the operand of an instance that decides its size, -1 where it has none: of a NaN a NaN, of an
/// infinity an infinity; else in the largest term of a sum the factor that was computed, of several the one
/// furthest from 1; of a minimum or maximum the one that was taken.
int32_t deciding_operand(const vm::ValueSlice&, const vm::SliceInstance&, const std::vector<bool>& computed);

}  // namespace assay
