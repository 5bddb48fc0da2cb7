// What the parts of the adjoint evaluation share: the decoded view of a problem and the outputs being filled.
#pragma once
#include <mutex>

#include "reference/bound_adjoint.h"
#include "reference/exact_grid.h"
#include "reference/gated_adjoint.h"
#include "reference/gated_form.h"
#include "reference/slices.h"

namespace assay {

struct AdjointProblem {
  const Problem& problem;
  const GatedAdjointRow& row;
  const GatedTensors& x;
  const Tensor& d_o;
  const Tensor* dS;  ///< null where absent
  AdjointBoundModel model;
  AdjointGrid grid;
  ReferenceOutput *dq, *dk, *dv;
  ReferenceOutput *dg, *dS0;  ///< null where that input is absent; dg of one gate per head: of every token
  ReferenceOutput* du;        ///< of every slice, [N,H,K]; null where there is no u
  std::mutex& mutex;          ///< guards what is not an element of its own

  int64_t K() const { return problem.sizes.K; }
  int64_t V() const { return problem.sizes.V; }
  int64_t H() const { return problem.sizes.H; }
  /// First element of v or do at token t of the slice; of a state at key channel c.
  int64_t output_row(const Slice& s, int64_t t) const { return ((s.first_row + t) * H() + s.h) * V(); }
  int64_t state_row(const Slice& s, int64_t c) const { return ((s.n * H() + s.h) * K() + c) * V(); }
};

}  // namespace assay
