// Source lines that can have made finite values wrong: a line is a suspect where other values of its
// instructions would make every wrong element right and leave every right one as it is.
#pragma once
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/result/suspect_line.h"

namespace assay {

/// An output element, what it is in exact arithmetic and what it should be.
struct JudgedElement {
  std::string output;
  int64_t flat = 0;
  double is = 0, should = 0;
  bool wrong = false;
};

/// The likeliest eight; slices are taken for at most so many seconds. None where nothing is wrong or no slice
/// tells.
std::vector<SuspectLine> suspect_lines(const Program&, const TensorMap& inputs, const vm::MachineOptions&,
                                       const std::vector<JudgedElement>&, double seconds);

}  // namespace assay
