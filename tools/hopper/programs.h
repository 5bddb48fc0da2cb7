// Whole programs of Hopper's copy engine and of clusters, drawn and written by hand, for comparing the
// machine with a GPU: what they leave in memory is digested (tests/data/hopper_h200.txt).
#pragma once
#include <string>
#include <vector>

#include "src/base/program/program.h"

namespace assay::hopper {

struct NamedProgram {
  std::string name;
  Program program;
  TensorMap inputs;
};

/// The same ones in every build.
std::vector<NamedProgram> programs();
/// What the machine does not model yet: tiles of interleaved channels.
std::vector<NamedProgram> unmodelled_programs();

}  // namespace assay::hopper
