// A second case for a diagnosis: a shrunk case is so small that different faults look alike in it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/verification/compare/compare.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {

/// The same kernel on a case with random values, several heads and channels, and more tokens, whose values
/// are wrong too.
struct Companion {
  Case case_;
  TensorMap inputs;
  Problem problem;
  Outcome outcome;
  ReferenceResult reference;
  std::vector<OutputComparison> outputs;
};

/// A case on which the kernel does not come to its end: that says more than wrong values do.
struct TrappedCase {
  Case case_;
  Trap trap;
};

struct FurtherCases {
  std::unique_ptr<Companion> companion;  ///< null: values are right wherever the kernel came to its end
  std::optional<TrappedCase> trapped;    ///< the first
};

/// Cases to try, the most telling first.
std::vector<Case> companion_cases(const Case&, const Operator&);
/// Up to the first of them that has values beyond their bounds, for at most so many seconds; refused ones are
/// left out.
FurtherCases find_further_cases(const Case&, const Kernel&, const Operator&, Backend&, int threads,
                                double seconds);

/// The same shapes with decays so strong that an exponential whose argument is above 0 overflows: then that
/// argument can be walked back from.
struct OverflowingCase {
  Case case_;
  TensorMap inputs;
  OriginTrace trace;
};
/// None where none of a few cases has an output that an overflowing exponential made non-finite.
std::optional<OverflowingCase> find_overflow(const Case&, const Kernel&, const Operator&, Backend&,
                                             const OriginOptions&);

/// Does the output element stay finite where the sequences are filled up with zero rows to whole chunks? None
/// where they are whole, packed, or the run is refused.
std::optional<bool> finite_when_padded(const Case&, const Kernel&, const TensorMap& inputs, Backend&,
                                       const std::string& output, int64_t flat);

/// On the same shapes with the same decay at every row: does an exponential see a larger argument than one
/// row's decay can make it? None where the run is refused, or the decays are not drawn.
std::optional<bool> exponents_span_rows(const Case&, const Kernel&, Backend&);

}  // namespace assay
