// Enclosures of rwkv7 (enclosed_by_precision.h).
#include "reference/bounds/enclosed_by_precision.h"
#include "reference/operators/rwkv7.h"

namespace assay {
namespace {

/// Every operation of the transcription has a relative error of at most `u`, the exponential 2^7 u.
Arithmetic transcribed(double u, const SliceProblem& x) {
  const auto K = static_cast<double>(x.inputs[Rwkv7::In::r].columns),
             V = static_cast<double>(x.inputs[Rwkv7::In::v].columns);
  Arithmetic a;
  a.decay = 130 * u, a.write = 3 * u, a.step = 3 * u, a.removal = (K + 6) * u, a.readout = (K + V + 6) * u;
  return a;
}

}  // namespace

bool Rwkv7::enclose_forward(const SliceProblem& x, int level, SliceBalls& y) {
  return forward_by_precision<Rwkv7>(x, level, &transcribed, y);
}
bool Rwkv7::enclose_adjoint(const SliceProblem& x, int level, SliceBalls& y) {
  return adjoint_by_precision<Rwkv7>(x, level, &transcribed, y);
}

}  // namespace assay
