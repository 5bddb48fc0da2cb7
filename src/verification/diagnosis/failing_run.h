// A run whose values are beyond their bounds, beside what they should have been: what a mutated meaning of
// the operator is compared with.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/verification/compare/compare.h"

namespace assay {

struct FailingRun {
  const Operator* op = nullptr;
  Problem problem;                             ///< inputs, sizes and the kernel's declared arithmetic
  const TensorMap* outputs = nullptr;          ///< what the kernel gave
  const ReferenceResult* reference = nullptr;  ///< what it should have given
  const std::vector<OutputComparison>* judged = nullptr;
  /// Directions in which some element is beyond its bound: only those are evaluated again.
  bool forward = false, backward = false;
  /// The gates were made explicit (with_explicit_gates): dg_gamma is the sum of dg over tokens.
  bool sums_gate_gradient = false;
  /// Outputs that hold what the program gives on real numbers (real_run.h): the reference's bound is then
  /// what may lie between the two though the formula is right, and a prediction's its own radius alone.
  std::set<std::string> on_reals;
  /// Holds problem.inputs where this run owns them.
  std::shared_ptr<const TensorMap> owned;

  const TensorMap& inputs() const { return *problem.inputs; }
  /// The reference's output of that name, or null.
  const ReferenceOutput* expected(const std::string& name) const;
  bool is_on_reals(const std::string& output) const { return on_reals.count(output) > 0; }
  /// Sets `forward` and `backward` by the wrong outputs.
  void find_directions();
  /// Comparisons with at least one element beyond its bound or of a wrong class.
  std::vector<const OutputComparison*> wrong() const;
  /// The operator's argument or cotangent of that name.
  const ArgumentSpec* argument(const std::string& name) const;
  /// Arguments that are there and decay: log decays with an axis T.
  std::vector<std::string> gates() const;
  /// Arguments that are there, states among them apart, cotangents apart.
  std::vector<std::string> operands() const;
  std::vector<std::string> states() const;
  std::vector<std::string> cotangents() const;
  int64_t sequences() const;
  /// First row and number of tokens of each sequence, rows counted over [B,T].
  std::vector<std::pair<int64_t, int64_t>> spans() const;
};

/// Of what was judged; evaluated again are the directions of its wrong outputs. All are to outlive it.
FailingRun failing_run(const Operator&, const Problem&, const TensorMap& outputs, const ReferenceResult&,
                       const std::vector<OutputComparison>& judged);

/// The same run with every decay a tensor [B,T,H] of simple_gla: operators whose decay is fixed, constant per
/// head or absent. Unchanged where the operator has gates of its own, or is no such recurrence.
FailingRun with_explicit_gates(const FailingRun&);

/// Position of an axis by its letter, or -1.
int axis_of(const Tensor&, std::string_view letter);

}  // namespace assay
