// run_moved: the outputs on real numbers of a program whose inputs are moved by anything, however small: the
// machine runs from the inputs as they are, and their shadows begin with the move (error_trace.h).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/vm/machine.h"

namespace assay::vm {

/// By input: an element and what is added to it. Of inputs of a format with 16 bits or more.
struct ElementMove {
  int64_t flat = 0;
  double by = 0;
};
using InputMoves = std::map<std::string, std::vector<ElementMove>>;

/// By output: element by element, NaN where the machine's value is not finite or no shadow follows it. Empty
/// after a trap. Integers are those of the unmoved run. Throws BadInput as run() does.
using RealOutputs = std::map<std::string, std::vector<double>>;
RealOutputs run_moved(const Program&, const TensorMap& inputs, const InputMoves&, const MachineOptions&);

}  // namespace assay::vm
