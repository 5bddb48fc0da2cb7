// Enclosures of the delta rules that read after the decay (enclosed_by_precision.h).
#include "reference/bounds/enclosed_by_precision.h"
#include "reference/operators/delta_rule.h"
#include "reference/operators/gated_delta_rule.h"
#include "reference/operators/kda.h"

namespace assay {
namespace {

/// Every operation of the transcription has a relative error of at most `u`, the exponential 2^7 u.
Arithmetic transcribed(double u, const SliceProblem& x) {
  const auto K = static_cast<double>(x.inputs[0].columns), V = static_cast<double>(x.inputs[2].columns);
  Arithmetic a;
  a.decay = 130 * u, a.write = 5 * u, a.step = 3 * u, a.removal = (K + 8) * u;
  a.readout = (K * V + K + V + 8) * u;
  return a;
}

}  // namespace

#define ASSAY_DELTA_ENCLOSURES(Op)                                            \
  bool Op::enclose_forward(const SliceProblem& x, int level, SliceBalls& y) { \
    return forward_by_precision<Op>(x, level, &transcribed, y);               \
  }                                                                           \
  bool Op::enclose_adjoint(const SliceProblem& x, int level, SliceBalls& y) { \
    return adjoint_by_precision<Op>(x, level, &transcribed, y);               \
  }

ASSAY_DELTA_ENCLOSURES(DeltaRule)
ASSAY_DELTA_ENCLOSURES(GatedDeltaRule)
ASSAY_DELTA_ENCLOSURES(Kda)

}  // namespace assay
