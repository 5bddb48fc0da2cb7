// What the parts of the forward evaluation share: the decoded view of a problem and the outputs being filled.
#pragma once
#include <cmath>
#include <cstdint>
#include <mutex>

#include "reference/bound.h"
#include "reference/exact_grid.h"
#include "reference/gated_form.h"
#include "reference/gated_forward.h"
#include "reference/slices.h"

namespace assay {

struct ForwardProblem {
  const Problem& problem;
  const GatedRow& row;
  const GatedTensors& x;
  BoundModel model;
  ExactGrid grid;
  bool exact_claimed;  ///< the kernel declares no error at all
  ReferenceOutput &o, &state;
  std::mutex& mutex;  ///< guards what is not an element of its own: the outputs' rungs

  int64_t K() const { return problem.sizes.K; }
  int64_t V() const { return problem.sizes.V; }
  int64_t H() const { return problem.sizes.H; }
  /// First element of v or o at token t of the slice; of a state at key channel c.
  int64_t output_row(const Slice& s, int64_t t) const { return ((s.first_row + t) * H() + s.h) * V(); }
  int64_t state_row(const Slice& s, int64_t c) const { return ((s.n * H() + s.h) * K() + c) * V(); }
};

/// A radius this large leaves no verdict; NaN counts as too wide.
inline bool too_wide(double rad, double bound) {
  return !(rad <= kEnclosureShare * bound);
}

/// Enclosures have doubles for midpoints. Where a radius of half their spacing is too wide only an exact
/// value could be enclosed, and with decays no value is: no rung helps.
inline bool out_of_reach(const ForwardProblem& f, double mid, double bound) {
  return f.x.decays() && kEnclosureShare * bound <= 0x1p-54 * std::fabs(mid);
}

}  // namespace assay
