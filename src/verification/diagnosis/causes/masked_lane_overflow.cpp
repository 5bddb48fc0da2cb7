// A decay between row i and a later row j is computed before the causal mask is applied: its exponent is
// minus the decay from i to j, positive; the mask multiplies by zero afterwards, and zero times infinity is
// NaN.
#include <fmt/format.h>

#include "src/verification/diagnosis/causes/gate_span.h"

namespace assay {
namespace {

/// No chunk of the sequence is partial.
bool is_whole(const std::optional<GateSpan>& span) {
  constexpr int64_t kLongestChunk = 128;
  return span && span->length % kLongestChunk == 0;
}

}  // namespace

Cause masked_lane_overflow() {
  return {
      "masked-lane-overflow",
      "an exponential overflows in a lane that the causal mask discards by multiplication",
      [](const Evidence& e) {
        Diagnosis d;
        const std::optional<GateSpan> span = gate_span(e);
        if (!e.trace || e.trace->origin.kind != OriginKind::exp_overflow) return d;
        if (e.trace->masked_by_product) {
          d.score += 0.6;
          d.evidence.push_back("it met the zero of a mask: " + e.trace->masked_at.instruction);
        }
        if (e.trace->zero_selected && !e.finite_when_padded.value_or(false)) {
          d.score +=
              e.finite_when_padded || is_whole(span) ? 0.6 : 0.25;  // else a row past the end may be meant
          d.evidence.push_back("its infinity met a zero that a select put there: " +
                               e.trace->masked_at.instruction);
        }
        if (span && span->later_than_output()) {
          d.score += e.trace->masked_by_product ? 0.3 : 0.25;  // alone it is no more than a positive exponent
          d.evidence.push_back(fmt::format("the exponential spans {}, all later than the output's row {}",
                                           rows_text(*span), span->output_row));
        }
        d.explanation =
            "exp of the decay between a row and a later one is evaluated before the causal mask and "
            "masked by a "
            "product with 0: apply the mask to the exponent, or select";
        return d;
      }};
}

}  // namespace assay
