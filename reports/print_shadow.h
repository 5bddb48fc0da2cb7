// What `assay trace` says of a run beside exact arithmetic.
#pragma once
#include <string>

#include "reports/console.h"
#include "src/result/verification.h"

namespace assay {

/// About ten seconds of shadow execution on two cores; a longer run goes without.
inline constexpr uint64_t kShadowInstructions = 500'000'000;

/// How far an exponential was from overflow: "saw up to -3.2: safe", "saw up to 126: within 2 of overflow".
std::string distance_text(const ExponentRange&);
/// Errors of the outputs, the lines that made them, the first parting, the instructions nearest to where
/// their formats end: at most 15 lines.
void print_shadow(const Console&, const Verification&);

}  // namespace assay
