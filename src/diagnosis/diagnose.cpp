#include "src/diagnosis/diagnose.h"

#include <algorithm>

namespace assay {

#define CAUSE(function) Cause function();
#include "src/diagnosis/causes.def"
#undef CAUSE

const std::vector<Cause>& causes() {
  static const std::vector<Cause> all = {
#define CAUSE(function) function(),
#include "src/diagnosis/causes.def"
#undef CAUSE
  };
  return all;
}

std::vector<Diagnosis> diagnose(const Evidence& evidence) {
  std::vector<Diagnosis> found;
  for (const Cause& cause : causes()) {
    Diagnosis d = cause.judge(evidence);
    d.cause = cause.name;
    if (d.score > 0) found.push_back(std::move(d));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Diagnosis& a, const Diagnosis& b) { return a.score > b.score; });
  return found;
}

}  // namespace assay
