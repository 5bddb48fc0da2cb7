// Enclosures of comba (enclosed_by_precision.h).
#include "reference/bounds/enclosed_by_precision.h"
#include "reference/operators/comba.h"

namespace assay {
namespace {

using In = Comba::In;

/// Every operation of the transcription has a relative error of at most `u`, the exponential 2^7 u.
Arithmetic transcribed(double u, const SliceProblem& x) {
  const auto K = static_cast<double>(x.inputs[In::q].columns),
             V = static_cast<double>(x.inputs[In::v].columns);
  Arithmetic a;
  a.decay = 131 * u, a.write = 5 * u, a.step = 3 * u, a.removal = (K + 8) * u;
  a.readout = (K * V + K + V + 8) * u;
  return a;
}

}  // namespace

bool Comba::enclose_forward(const SliceProblem& x, int level, SliceBalls& y) {
  return forward_by_precision<Comba>(x, level, &transcribed, y);
}
bool Comba::enclose_adjoint(const SliceProblem& x, int level, SliceBalls& y) {
  return adjoint_by_precision<Comba>(x, level, &transcribed, y);
}

}  // namespace assay
