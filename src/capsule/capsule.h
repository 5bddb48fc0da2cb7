// A program with concrete sizes and tensors: what is run, checked and traced without an operator.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// What the values of a tensor drawn at random may be.
struct DrawnRange {
  bool is_range = false;  ///< from `low` to `high`
  double low = 0, high = 0;
  bool positive = false;
};

struct Capsule {
  std::string name;                      ///< of the launch file, or its own
  std::map<std::string, int64_t> sizes;  ///< those it was made with, by name
  uint64_t seed = 0;                     ///< of its random tensors
  Program program;
  TensorMap inputs;
  std::map<std::string, DrawnRange> drawn;  ///< those of the inputs that are drawn at random
  std::set<std::string> fixed;              ///< inputs that the program may not change
  TensorMap recorded;                       ///< what the outputs were on a GPU
  std::set<std::string> partly;             ///< outputs that need not be written whole
};

}  // namespace assay
