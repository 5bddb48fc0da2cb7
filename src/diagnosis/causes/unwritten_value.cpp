// A boundary condition that leaves a tail of a tensor, a tile of shared memory or a workspace untouched.
#include "src/diagnosis/diagnose.h"

namespace assay {

Cause unwritten_value() {
  return {"unwritten-value", "an output depends on memory or a register that nothing wrote",
          [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != "unwritten-memory") return d;
            d.score = 0.9;
            d.evidence.push_back(e.trace->origin.sentence);
            d.explanation =
                "an element was read before anything wrote it, or never stored: check the boundary condition "
                "of the store or load named";
            return d;
          }};
}

}  // namespace assay
