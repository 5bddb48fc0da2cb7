#include "src/verification/verify/verdict.h"

#include <fmt/format.h>

#include "src/base/program/source_place.h"
#include "src/result/finding_kind.h"

namespace assay {

void decide(Verification& v) {
  v.verdict = Verdict::pass;
  v.cause.clear();
  if (!v.domain.empty() && v.properties_failed.empty()) {
    v.verdict = Verdict::domain;
    return;
  }
  for (const FindingKindRow& row : finding_kinds()) {
    v.cause = row.cause(v);
    if (v.cause.empty()) continue;
    v.verdict = row.verdict;
    return;
  }
}

void check_exponents(Verification& v) {
  std::vector<std::string> failed;
  for (const ExponentRange& range : v.exponents)
    if (range.max > 0)
      failed.push_back(fmt::format("exponents-nonpositive: {} at {} saw {}", range.instruction,
                                   place_key(range.where), range.max));
  v.properties_failed.insert(v.properties_failed.begin(), failed.begin(), failed.end());
}

}  // namespace assay
