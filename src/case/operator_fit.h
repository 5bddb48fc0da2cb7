// Which operators a set of named tensors can be the inputs of.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/case/case.h"

namespace assay {

/// One operator held against the tensors.
struct OperatorFit {
  std::string_view name;
  bool fits = false;
  Case case_;                         ///< sizes and formats, where it fits
  std::vector<std::string> notes;     ///< as GivenInputs::notes
  std::vector<std::string> matched;   ///< its inputs that a tensor is named after
  std::vector<std::string> missing;   ///< inputs that it needs and that no tensor is named after
  std::vector<std::string> expected;  ///< its outputs that a tensor is named after
  std::vector<std::string> unused;    ///< tensors that it has no input and no output for
  std::string complaint;              ///< why the matched ones do not go together; empty where they do
};

/// All operators: those that fit first, then the nearest, by what is missing and how much is matched. The
/// direction is backward where all of an operator's needed cotangents are among the tensors.
std::vector<OperatorFit> fit_operators(const TensorMap& raw, const Case& base, int64_t heads,
                                       const std::string& source);

}  // namespace assay
