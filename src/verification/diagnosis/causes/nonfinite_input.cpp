// The kernel is not at fault.
#include "src/verification/diagnosis/diagnose.h"

namespace assay {

Cause nonfinite_input() {
  return {"nonfinite-input", "an input that is not finite reached the output", [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != OriginKind::input) return d;
            d.score = 0.9;
            d.evidence.push_back(e.trace->origin.sentence);
            d.explanation = "the input itself is NaN or infinite: outside every operator's domain";
            return d;
          }};
}

}  // namespace assay
