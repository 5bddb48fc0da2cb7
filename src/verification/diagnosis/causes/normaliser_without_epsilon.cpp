// Zero divided by zero: the numerator vanished with the weights that the divisor sums.
#include <cmath>

#include "src/verification/diagnosis/causes/division_by_zero.h"

namespace assay {

Cause normaliser_without_epsilon() {
  return {"normaliser-without-epsilon",
          "a quotient 0/0: nothing was accumulated in the normaliser, and no epsilon keeps it from zero",
          [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != OriginKind::division_by_zero ||
                !(std::isnan(e.trace->origin.result) || e.trace->nan_kind == OriginKind::zero_times_infinity))
              return d;
            if (divides_by_decay(e)) return d;  // no sum of weights
            // Of exponentials an epsilon would hide that the quotient is another one.
            d.score = divides_by_vanished_exponentials(e) ? 0.5 : 0.85;
            d.evidence.push_back(e.trace->origin.sentence);
            d.explanation = "add an epsilon to the divisor: where no weight is left the quotient is then 0";
            return d;
          }};
}

}  // namespace assay
