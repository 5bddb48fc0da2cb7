// A divisor that underflowed or was never accumulated: a decay, a sum of exponentials, a normaliser.
#include "src/verification/diagnosis/causes/division_by_zero.h"

#include <algorithm>

namespace assay {

bool divides_by_decay(const Evidence& e) {
  if (!e.op || !e.trace || !e.trace->divisor || e.trace->divisor->inputs.empty()) return false;
  const std::set<std::string>& inputs = e.trace->divisor->inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](const std::string& name) {
    return std::any_of(e.op->inputs.begin(), e.op->inputs.end(),
                       [&](const ArgumentSpec& a) { return a.name == name && a.role == Role::log_decay; });
  });
}

bool divides_by_vanished_exponentials(const Evidence& e) {
  return e.trace && e.trace->divisor && e.trace->divisor->exponentials_vanished && !divides_by_decay(e);
}

Cause division_by_zero() {
  return {
      "division-by-zero", "a divisor, or the argument of a reciprocal, was zero", [](const Evidence& e) {
        Diagnosis d;
        if (!e.trace || e.trace->origin.kind != OriginKind::division_by_zero) return d;
        d.score = 0.8;
        d.evidence.push_back(e.trace->origin.sentence);
        d.explanation = "guard the divisor: the inputs listed made it zero";
        if (divides_by_decay(e)) {
          d.score = 0.9;
          d.evidence.push_back("the divisor is made of log decays alone: a decay that underflowed");
          d.explanation =
              "nothing can be divided by a decay, which may be 0: exponentiate the difference of the sums "
              "of log decays, or keep what was there before the decay";
        } else if (divides_by_vanished_exponentials(e)) {
          d.evidence.push_back("every exponential behind the divisor underflowed to 0");
          d.explanation =
              "the sum of exponentials underflowed as a whole: take the largest argument off each first";
        }
        return d;
      }};
}

}  // namespace assay
