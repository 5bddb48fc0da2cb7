// Further cases for a diagnosis: a shrunk case is so small that different faults look alike in it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/base/vm/exact_run.h"
#include "src/verification/compare/compare.h"
#include "src/verification/diagnosis/failing_run.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {

/// The same kernel on another case whose values are wrong too.
struct Companion {
  Case case_;
  std::string text;  ///< its token, and whether a property derived it
  TensorMap inputs;
  Problem problem;
  Outcome outcome;
  ReferenceResult reference;
  std::vector<OutputComparison> outputs;
  std::optional<vm::ExactRun> exact;  ///< where the run is small, and its own kernel's

  FailingRun failing(const Operator& op) const {
    return failing_run(op, problem, outcome.outputs, reference, outputs);
  }
};

/// A case on which the kernel does not come to its end: that says more than wrong values do.
struct TrappedCase {
  Case case_;
  Trap trap;
};

/// What a property ran beside the case itself: a part of it, or the case on changed inputs.
struct DerivedRun {
  Case case_;
  TensorMap inputs;
};

/// Cases to try, the most telling first: long ones with weak decays, whose far tokens still count, in fp32
/// too; then the case's own decays, strong ones, whole chunks, channels that fill no vector. Random values,
/// several heads and channels.
std::vector<Case> companion_cases(const Case&, const Operator&);

/// Can the machine run it again? A test's engine may have no program.
bool has_code(const Program&);

struct FurtherOptions {
  int threads = 1;
  vm::MachineOptions machine;
  double seconds = 0;  ///< begun within so many counted ones (counted_work.h)
  /// Values within their bounds may be wrong on real numbers: that is looked at too.
  bool formula = false;
};

/// Runs the kernel on further cases and hands over each whose values are wrong, until one is enough.
class FurtherCases {
 public:
  using IsEnough = std::function<bool(const Companion&)>;
  FurtherCases(const Kernel&, const Operator&, Backend&, FurtherOptions, IsEnough);

  /// What properties derived, on their inputs; those that have the kernel's domain.
  void run(const std::vector<DerivedRun>&);
  /// companion_cases; those that the kernel refuses are left out, and those shorter than a wrong one.
  void run_companions(const Case&);

  /// The first on which the kernel did not come to its end.
  const std::optional<TrappedCase>& trapped() const { return trapped_; }

 private:
  bool is_over() const;
  void run(const Case&, TensorMap inputs, const std::string& text);
  bool is_wrong(Companion&, const Program&) const;

  const Kernel& kernel_;
  const Operator& op_;
  Backend& backend_;
  const FurtherOptions options_;
  const IsEnough is_enough_;
  const double start_;
  bool enough_ = false;
  int64_t shortest_wrong_ = 0;  ///< tokens of the shortest one handed over
  std::optional<TrappedCase> trapped_;
};

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

/// Does the output element stay finite where the sequences are filled up with zero rows to whole chunks,
/// behind their last row and also before their first? Of blocks that are counted from the first row, or from
/// the last as in gradients, one of both leaves every row in its place. None where they are whole, packed, or
/// the run is refused.
std::optional<bool> finite_when_padded(const Case&, const Kernel&, const TensorMap& inputs, Backend&,
                                       const std::string& output, int64_t flat);

/// On the same shapes with the same decay at every row: does an exponential see a larger argument than one
/// row's decay can make it? None where the run is refused, or the decays are not drawn.
std::optional<bool> exponents_span_rows(const Case&, const Kernel&, Backend&);

}  // namespace assay
