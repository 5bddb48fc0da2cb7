// A normaliser (a sum of weights, a norm) that underflowed or was never accumulated.
#include "src/verification/diagnosis/diagnose.h"

namespace assay {

Cause division_by_zero() {
  return {"division-by-zero", "a divisor, or the argument of a reciprocal, was zero", [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != OriginKind::division_by_zero) return d;
            d.score = 0.8;
            d.evidence.push_back(e.trace->origin.sentence);
            d.explanation = "guard the divisor: the inputs listed made it zero";
            return d;
          }};
}

}  // namespace assay
