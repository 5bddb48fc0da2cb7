// The inputs of operators of one tensor x, row by row: gates from their logits, lengths.
#pragma once
#include "reference/slice_problem.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

/// T x K.
template <typename Real>
struct RowsOfX {
  Matrix<Real> x;
  Real scale{1};

  template <typename Self, typename Visit>
  static void each(Self& x, const Visit& visit) {
    visit("x", x.x);
  }
  void take(const SliceProblem&) {}
};

}  // namespace assay
