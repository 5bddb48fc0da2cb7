// What bytes without a type are taken for by the program that stores there.
#pragma once
#include <map>
#include <string>

#include "src/base/numerics/format.h"
#include "src/base/vm/machine.h"

namespace assay::vm {

/// By name of a buffer: the float type of all that the program stores there, where it is one. Stores of words
/// without a float type (halves, for one, are stored as .b16) and copies name none. Throws BadInput as run().
std::map<std::string, Dtype> stored_floats(const Program&, const TensorMap& inputs, const MachineOptions&);

}  // namespace assay::vm
