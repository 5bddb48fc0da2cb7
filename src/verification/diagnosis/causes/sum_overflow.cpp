// fp32 ends at 3.4e38, fp16 at 65504: finite operands, an infinite result.
#include "src/verification/diagnosis/diagnose.h"

namespace assay {

Cause sum_overflow() {
  return {
      "sum-overflow", "a sum or a product left the range of its format", [](const Evidence& e) {
        Diagnosis d;
        if (!e.trace || e.trace->origin.kind != OriginKind::accumulation_overflow) return d;
        d.score = 0.8;
        d.evidence.push_back(e.trace->origin.sentence);
        d.explanation =
            "the factors or the sum are too large for the format: scale before, or accumulate in a wider one";
        return d;
      }};
}

}  // namespace assay
