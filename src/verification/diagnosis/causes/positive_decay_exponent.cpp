// Log decays are at most zero, and so is every decay between two rows in the right order: a positive argument
// of an exponential says that rows were taken in the wrong order or that an anchor does not lie between them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/program/source_place.h"
#include "src/verification/diagnosis/causes/gate_span.h"

namespace assay {
namespace {

constexpr double kFarTooLarge = 16;   // binades
constexpr double kHalfTheRange = 64;  // binades of fp32's 128 above 1

bool has_log_decay(const Operator* op) {
  return op && std::any_of(op->inputs.begin(), op->inputs.end(),
                           [](const ArgumentSpec& a) { return a.role == Role::log_decay; });
}

/// Of finite values: one is far larger than it should be, and an exponential had an argument that makes up
/// for at least half of that, in binades.
void judge_growth(const Evidence& e, Diagnosis& d) {
  if (!has_log_decay(e.op) || !e.outputs || !e.exponents) return;
  for (const OutputComparison& o : *e.outputs) {
    if (o.violation == 0 || !std::isfinite(o.worst.got)) continue;
    const double grown =
        std::log2(std::fabs(o.worst.got) / std::max(std::fabs(o.worst.expected), o.worst.bound));
    if (!(grown >= kFarTooLarge)) continue;
    for (const ExponentRange& range : *e.exponents) {
      if (!(range.max >= grown / 2)) continue;
      d.score = 0.55;
      d.evidence = {
          fmt::format("{} is 2^{:.0f} times what it should be, and {} at {} saw an argument of {:.4g}",
                      o.worst.element, grown, range.instruction, source_place(range.where), range.max)};
    }
  }
}

/// Of a sum or a product that left fp32's range: an exponential that makes up for at least half of it. The
/// sum shows the fault of the factor.
void judge_factor(const Evidence& e, Diagnosis& d) {
  if (!has_log_decay(e.op) || !e.trace || !e.exponents) return;
  if (e.trace->origin.kind != OriginKind::accumulation_overflow) return;
  for (const ExponentRange& range : *e.exponents) {
    if (!(range.max >= kHalfTheRange)) continue;
    d.score = 0.85;
    d.evidence = {
        e.trace->origin.sentence,
        fmt::format("{} at {} saw an argument of {:.4g}: it gave 2^{:.0f}, and the sum has the rest",
                    range.instruction, source_place(range.where), range.max, range.max)};
  }
}

}  // namespace

Cause positive_decay_exponent() {
  return {"positive-decay-exponent", "an exponential of a log decay had a positive argument",
          [](const Evidence& e) {
            Diagnosis d;
            d.explanation =
                "a decay is never above 1: the rows or the anchor of this exponential are in the wrong order";
            judge_growth(e, d);
            judge_factor(e, d);
            if (!e.trace || e.trace->origin.kind != OriginKind::exp_overflow) return d;
            d.score = std::max(d.score, 0.3);
            const Origin& origin = e.trace->origin;
            if (!origin.operands.empty())
              d.evidence.push_back(fmt::format("the argument was {:.6g} (base 2)",
                                               e.trace->exponent.value_or(origin.operands[0].value)));
            if (const std::optional<GateSpan> span = gate_span(e))
              d.evidence.push_back("it is minus the decay of " + rows_text(*span));
            return d;
          }};
}

}  // namespace assay
