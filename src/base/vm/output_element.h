// An element of an output of a program.
#pragma once
#include <cstdint>
#include <string>

namespace assay::vm {

struct OutputElement {
  std::string output;
  int64_t flat = 0;
};

}  // namespace assay::vm
