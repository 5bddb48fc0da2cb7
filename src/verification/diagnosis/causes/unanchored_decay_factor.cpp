// The decay between two rows of a chunk is written as e^{G_i} e^{-G_j} with sums G from the chunk's start:
// the second factor grows with the chunk's whole decay, although the product would be at most 1.
#include <fmt/format.h>

#include "src/verification/diagnosis/causes/gate_span.h"

namespace assay {

Cause unanchored_decay_factor() {
  return {
      "unanchored-decay-factor",
      "one factor of a split decay is the inverse of the decay since the chunk's start",
      [](const Evidence& e) {
        Diagnosis d;
        const std::optional<GateSpan> span = gate_span(e);
        constexpr int64_t kBlock = 16;  // sums count from a chunk's or block's start
        if (!span || !span->whole || span->later_than_output() || span->first % kBlock != 0) return d;
        if (span->of_state()) {
          d.score = 0.35;
        } else if (span->last <= span->output_row) {
          d.score = 0.65;
          d.evidence.push_back(fmt::format(
              "no row of it is later than the output's row {}: the lane is a live one", span->output_row));
        } else {
          return d;
        }
        d.evidence.insert(d.evidence.begin(),
                          fmt::format("the exponent {:.4g} is minus the decay of every row it depends on, {}",
                                      span->exponent, rows_text(*span)));
        if (e.spans_rows.value_or(false)) {
          d.score += 0.1;
          d.evidence.push_back("where all rows decay alike, exponents are those of several rows");
        } else if (e.spans_rows) {
          d.score -= 0.3;
          d.against.push_back("where all rows decay alike, no exponent is more than one row's decay");
        }
        if (e.trace->masked_by_product) d.score -= 0.35;  // then it is masked-lane-overflow
        d.explanation =
            "e^(G_i) e^(-G_j) overflows in its second factor: exponentiate the difference G_i - G_j, or "
            "count "
            "both sums from an anchor between the rows";
        return d;
      }};
}

}  // namespace assay
