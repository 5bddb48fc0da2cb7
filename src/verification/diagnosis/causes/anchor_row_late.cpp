// The factorised decay e^{G_i - a} e^{a - G_j} needs a between G_i and G_j on every row. An anchor taken one
// row late (an inclusive row for an exclusive sum, or the second row of a block) leaves minus one row's decay
// on the first row.
#include <fmt/format.h>

#include "src/verification/diagnosis/causes/gate_span.h"

namespace assay {

Cause anchor_row_late() {
  return {
      "anchor-row-late",
      "the anchor of a factorised decay stands one row late: one row's decay is turned around",
      [](const Evidence& e) {
        constexpr int64_t kBlock = 8;  // anchors stand at blocks of 16 rows or their halves
        Diagnosis d;
        const std::optional<GateSpan> span = gate_span(e);
        if (!span || span->first != span->last) return d;
        d.score = 0.4;
        d.evidence.push_back(fmt::format("the exponent {:.4g} is minus the decay of {} alone", span->exponent,
                                         rows_text(*span)));
        // Gradients may be made from the last row on: then blocks are counted from there.
        const bool from_end = is_gradient(e);
        const bool at_start =
            span->first % kBlock <= 1 || (from_end && (span->length - 1 - span->first) % kBlock <= 1);
        if (at_start) {
          d.score += 0.2;
          d.evidence.push_back(fmt::format("that row is next to the start of a block of {} rows", kBlock));
        }
        if (e.trace->masked_by_product) {
          d.score -= 0.35;  // then the lane is dead by intent: masked-lane-overflow
        } else if (e.trace->zero_selected && !e.finite_when_padded.value_or(true)) {
          d.score -= 0.35;  // so too: its zero was put there by a select
        } else {
          d.score += 0.2;
          d.evidence.push_back("no mask multiplied the infinity");
        }
        if (span->whole && span->last <= span->output_row) d.score -= 0.2;  // unanchored, or a state's
        if (e.spans_rows.value_or(false)) {
          d.score -= 0.55;
          d.against.push_back("where all rows decay alike, exponents are those of several rows");
        }
        d.explanation =
            "the decay is split at an anchor that does not lie between the two rows: take the row before the "
            "block";
        return d;
      }};
}

}  // namespace assay
