// fp16 ends at 65504: an intermediate that fp32 holds becomes infinite when an operand is narrowed.
#include "src/verification/diagnosis/diagnose.h"

namespace assay {

Cause format_overflow() {
  return {"format-overflow", "a finite value was too large for the format it was converted to",
          [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != OriginKind::conversion_overflow) return d;
            d.score = 0.9;
            d.evidence.push_back(e.trace->origin.sentence);
            d.explanation =
                "a value above the largest finite number of the narrower format: scale before converting, or "
                "use bf16";
            return d;
          }};
}

}  // namespace assay
