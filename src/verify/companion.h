// A second case for a diagnosis: a shrunk case is so small that different faults look alike in it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/backend/backend.h"
#include "kernels/kernel.h"
#include "src/compare/compare.h"

namespace assay {

/// The same kernel on a case with random values, several heads and channels, and more tokens, whose values are
/// wrong too.
struct Companion {
  Case case_;
  TensorMap inputs;
  Problem problem;
  Outcome outcome;
  ReferenceResult reference;
  std::vector<OutputComparison> outputs;
};

/// Cases to try, the most telling first.
std::vector<Case> companion_cases(const Case&, const Operator&);
/// The first of them that has values beyond their bounds; none where all are right, refused or beyond `seconds`.
std::unique_ptr<Companion> find_companion(const Case&, const Kernel&, const Operator&, Backend&, int threads,
                                          double seconds);

/// Does the output element stay finite where the sequences are filled up with zero rows to whole chunks? None
/// where they are whole, packed, or the run is refused.
std::optional<bool> finite_when_padded(const Case&, const Kernel&, const Operator&, const TensorMap& inputs, Backend&,
                                       const std::string& output, int64_t flat);

}  // namespace assay
