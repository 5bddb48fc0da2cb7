// A sum of exponentials whose every term underflows, or a gate that rounds to 0 before its logarithm.
#include "src/verification/diagnosis/diagnose.h"

namespace assay {

Cause logarithm_of_zero() {
  return {"logarithm-of-zero", "the logarithm of a value that underflowed to zero, or was never above it",
          [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != OriginKind::logarithm_of_zero) return d;
            d.score = 0.9;
            d.evidence.push_back(e.trace->origin.sentence);
            d.explanation = "add up in logarithms from the largest term, or keep the argument above zero";
            return d;
          }};
}

}  // namespace assay
