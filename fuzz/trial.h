// One fuzz case: verified, and its share of the properties checked.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "fuzz/properties.h"

namespace assay {

struct Trial {
  int64_t index = 0;
  const Kernel* kernel = nullptr;
  Case case_;
  std::vector<const Property*> properties;
  bool rerun = false;    ///< the case of an earlier finding
  bool shrunk = false;   ///< and as small as it gets
  bool diagnose = true;  ///< a fault is traced to its origin, which may cost far more than finding it
};

struct TrialReport {
  Trial trial;
  std::string rejected;       ///< the kernel's plan does not accept the case: why; nothing else is set then
  bool too_large = false;     ///< there is not the memory to run it; nothing else is set then
  Verification verification;  ///< failures of properties included
  std::string plain_cause;    ///< the cause before any tracing
  const Property* property = nullptr;  ///< the property that failed where the run alone was no finding
  std::vector<PropertyOutcome> outcomes;
  double seconds = 0;  ///< of the whole trial
};

/// Which properties case `index` checks: each in its share of the cases, fewer where the case is expensive.
std::vector<const Property*> properties_due(const Case&, uint64_t seed, int64_t index);

/// Runs it on one thread. Throws BadInput only for what no other case could mend (an instruction the machine
/// lacks).
TrialReport run_trial(const Trial&, Backend&, const FuzzOptions&);

/// The finding's own case verified once more, with everything a person wants to know: nearest finite inputs,
/// causes, in about so many seconds; as it is where that is too little, or where it takes five more.
Verification fully_traced(const TrialReport& original, const Verification& smallest, Backend&,
                          const FuzzOptions&, double seconds = HUGE_VAL);

/// Verifies `candidate` as far as is needed to say whether it fails with the cause of `original`; where that
/// takes longer than so many seconds it is given up and counts as one that does not.
std::optional<Verification> with_same_cause(const TrialReport& original, const Case& candidate, Backend&,
                                            const FuzzOptions&, double seconds = HUGE_VAL);

}  // namespace assay
