// Evaluation of any operator from its transcription alone, slice by slice, with enclosures: the only way for
// operators outside the blocked family, and the check on those inside.
#pragma once
#include <vector>

#include "reference/slice_bounds.h"
#include "reference/slice_problem.h"

namespace assay {

/// One list of enclosures per argument, in the order of the specifications.
using SliceBalls = std::vector<std::vector<Ball<double>>>;

/// What an operator's type provides, precision by precision: level 0 balls over double, 1 over double-double,
/// then intervals of 40 and 160 decimal digits. False where there is no such level.
struct LiteralRow {
  bool (*forward)(const SliceProblem&, int level, SliceBalls&);
  bool (*adjoint)(const SliceProblem&, int level, SliceBalls&);
  SliceBounds (*forward_bound)(const SliceProblem&);
  SliceBounds (*adjoint_bound)(const SliceProblem&);
  /// One slice per sequence and head; otherwise per sequence.
  bool per_head = true;
};

/// Outputs with enclosures and bounds.
ReferenceResult literal_forward(const Problem&, const Operator&, const LiteralRow&);
/// Gradients "dX" of every present input X. Arguments that several slices share (one per head, or per group
/// of heads) get the sum of the slices' gradients.
ReferenceResult literal_adjoint(const Problem&, const Operator&, const LiteralRow&);

}  // namespace assay
