#include "src/verification/diagnosis/diagnose.h"

#include <algorithm>
#include <set>

#include "src/verification/diagnosis/causes/failed_checks.h"
#include "src/verification/diagnosis/meaning.h"

namespace assay {

#define CAUSE(function) Cause function();
#include "src/verification/diagnosis/causes.def"
#undef CAUSE

const std::vector<Cause>& causes() {
  static const std::vector<Cause> all = [] {
    std::vector<Cause> list = {
#define CAUSE(function) function(),
#include "src/verification/diagnosis/causes.def"
#undef CAUSE
    };
    for (Cause& cause : failed_checks()) list.push_back(std::move(cause));
    return list;
  }();
  return all;
}

std::vector<std::pair<std::string_view, std::string_view>> cause_names() {
  std::vector<std::pair<std::string_view, std::string_view>> names;
  for (const Cause& cause : causes()) names.emplace_back(cause.name, cause.summary);
  for (const Meaning& meaning : meanings()) names.emplace_back(meaning.name, meaning.summary);
  std::set<std::string_view> named;
  std::erase_if(names, [&](const auto& row) { return !named.insert(row.first).second; });
  names.emplace_back(
      kTransposed,
      "two axes of a tensor in the inputs' file are exchanged: its own outputs agree with the other order");
  names.emplace_back(kUnexplained, "nothing above reproduces the wrong values: where they are is shown");
  return names;
}

void rank(std::vector<Diagnosis>& found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Diagnosis& a, const Diagnosis& b) { return a.score > b.score; });
  std::set<std::string> named;
  std::erase_if(found, [&](const Diagnosis& d) { return !named.insert(d.cause).second; });
}

std::vector<Diagnosis> diagnose(const Evidence& evidence) {
  std::vector<Diagnosis> found;
  for (const Cause& cause : causes()) {
    Diagnosis d = cause.judge(evidence);
    d.cause = cause.name;
    if (d.score > 0) found.push_back(std::move(d));
  }
  rank(found);
  return found;
}

}  // namespace assay
