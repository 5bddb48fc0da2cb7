// Rows behind the end of a partial chunk are loaded as zero, their summed decay is zero too, and the
// exponential of 0 - G_n, n a live row, overflows although the row's other operand is zero: zero times
// infinity.
#include <fmt/format.h>

#include "src/verification/diagnosis/causes/gate_span.h"

namespace assay {
namespace {

constexpr const char* kAdvice =
    "rows behind the end of the sequence take part with a decay sum of 0: give them the last live row's sum, "
    "or "
    "select them away before the product";

}  // namespace

Cause zero_filled_gate_rows() {
  return {"zero-filled-gate-rows", "dead rows of a partial chunk carry a zero decay sum into an exponential",
          [](const Evidence& e) {
            constexpr int64_t kChunk = 64, kBlock = 16;
            Diagnosis d;
            const std::optional<GateSpan> span = gate_span(e);
            if (e.finite_when_padded && e.trace && e.trace->origin.kind == OriginKind::exp_overflow) {
              if (!*e.finite_when_padded) return d;  // live rows overflow too
              d.score = 0.9;
              d.evidence.push_back(
                  "with zero rows after its last one or before its first, to whole chunks, the element is "
                  "finite: rows that are not there are at fault");
              // In a gradient made from the last row on, padding also moves the blocks of rows.
              const bool inner_row = is_gradient(e) && !e.trace->zero_selected && span &&
                                     span->first == span->last && span->first > 0 &&
                                     span->last < span->length - 1;
              if (inner_row) {
                d.score -= 0.3;
                d.against.push_back(fmt::format("the exponent is the decay of {} alone", rows_text(*span)));
              }
              d.explanation = kAdvice;
              return d;
            }
            if (!span || span->length % kChunk == 0) return d;  // no dead rows
            const int64_t last_chunk = (span->length - 1) / kChunk * kChunk,
                          last_block = (span->length - 1) / kBlock * kBlock;
            if (span->first < last_chunk) return d;
            d.score = 0.3;
            d.evidence.push_back(
                fmt::format("the sequence of {} rows ends in a partial chunk, and the exponential "
                            "spans {} in it",
                            span->length, rows_text(*span)));
            if (span->first == last_chunk || span->first == last_block) {
              d.score += 0.3;
              d.evidence.push_back(
                  "the span starts with the chunk or block: what was subtracted from is a zero sum");
            }
            if (span->last == span->length - 1) {
              d.score += 0.15;
              d.evidence.push_back("it ends with the last row of the sequence");
            }
            if (!span->later_than_output()) d.score += 0.1;
            if (span->last <= span->output_row && !span->of_state())
              d.score -= 0.4;                                 // no dead row takes part
            if (e.trace->masked_by_product) d.score -= 0.35;  // then it is masked-lane-overflow
            d.explanation = kAdvice;
            return d;
          }};
}

}  // namespace assay
