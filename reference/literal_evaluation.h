// Evaluation of any operator from its transcription alone, slice by slice, with enclosures: the only way for
// operators outside the blocked family, and the check on those inside.
#pragma once
#include <vector>

#include "reference/modelled_values.h"
#include "reference/slice_problem.h"

namespace assay {

/// One list of enclosures per argument, in the order of the specifications.
using SliceBalls = std::vector<std::vector<Ball<double>>>;

/// What an operator's type provides, precision by precision: level 0 balls over double, 1 over double-double,
/// then intervals of 40 and 160 decimal digits. False where there is no such level.
struct LiteralRow {
  bool (*forward)(const SliceProblem&, int level, SliceBalls&);
  bool (*adjoint)(const SliceProblem&, int level, SliceBalls&);
  /// Companions, and where the operator has a model of its kernels' arithmetic the bounds.
  ModelledValues (*forward_model)(const SliceProblem&);
  ModelledValues (*adjoint_model)(const SliceProblem&);
  /// One slice per sequence and head; otherwise per sequence.
  bool per_head = true;
};

/// Outputs with enclosures; bounds where the operator has a model, else infinite ("undecided").
ReferenceResult literal_forward(const Problem&, const Operator&, const LiteralRow&);
/// Gradients "dX" of every present input X. Arguments that several slices share (one per head, or per group
/// of heads) get the sum of the slices' gradients.
ReferenceResult literal_adjoint(const Problem&, const Operator&, const LiteralRow&);

}  // namespace assay
