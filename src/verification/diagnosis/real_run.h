// A failing run on real numbers: what the program gives where nothing rounds, in place of what it gave. A
// meaning is then confirmed or refuted to many digits, in any format.
#pragma once
#include "src/base/vm/exact_run.h"
#include "src/verification/diagnosis/failing_run.h"

namespace assay {

/// What puts values beyond their bounds. Unknown where the exact run does not follow them.
enum class WrongBy { formula, rounding, unknown };

class RealRun {
 public:
  /// Of the run as it rounds; both are to outlive this.
  RealRun(const FailingRun& rounded, const vm::ExactRun&);
  RealRun(const RealRun&) = delete;
  RealRun& operator=(const RealRun&) = delete;

  /// Formula: some output is wrong on real numbers, by at least half of what most of its wrong values are
  /// off by. Rounding: none is, and the wrong values of every output are right on real numbers.
  WrongBy wrong_by() const { return wrong_by_; }
  /// Where the formula is wrong: each output that the exact run follows holds its values, with elements wrong
  /// that differ from the reference by more than FormulaElement::allowed. Outputs that rounding alone makes
  /// wrong have nothing judged; those that cannot be followed are as the program gave them.
  const FailingRun& run() const { return run_; }

 private:
  WrongBy judge(const OutputComparison&, const vm::ExactOutput*);
  void put(OutputComparison&, const vm::ExactOutput&);

  FailingRun run_;
  TensorMap outputs_;
  ReferenceResult reference_;
  std::vector<OutputComparison> judged_;
  WrongBy wrong_by_ = WrongBy::unknown;
};

}  // namespace assay
