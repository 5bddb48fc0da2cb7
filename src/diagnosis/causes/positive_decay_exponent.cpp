// Log decays are at most zero, and so is every decay between two rows in the right order: a positive argument
// of an exponential says that rows were taken in the wrong order or that an anchor does not lie between them.
#include <fmt/format.h>

#include "src/diagnosis/causes/gate_span.h"

namespace assay {

Cause positive_decay_exponent() {
  return {"positive-decay-exponent", "an exponential of a log decay had a positive argument",
          [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != "exp-overflow") return d;
            d.score = 0.3;
            const Origin& origin = e.trace->origin;
            if (!origin.operands.empty())
              d.evidence.push_back(fmt::format("the argument was {:.6g} (base 2)", origin.operands[0].value));
            if (const std::optional<GateSpan> span = gate_span(e))
              d.evidence.push_back("it is minus the decay of " + rows_text(*span));
            d.explanation =
                "a decay is never above 1: the rows or the anchor of this exponential are in the wrong order";
            return d;
          }};
}

}  // namespace assay
