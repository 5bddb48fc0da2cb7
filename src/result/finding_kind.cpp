#include "src/result/finding_kind.h"

#include <algorithm>

namespace assay {
namespace {

bool any_element(const Verification& v, int64_t OutputComparison::*count) {
  return std::any_of(v.outputs.begin(), v.outputs.end(),
                     [&](const auto& output) { return output.*count > 0; });
}

bool hangs(const Verification& v) {
  return v.trap && v.trap->kind == TrapKind::hang;
}

/// Of two runs of one plan that should have had the same bits: properties whose names begin so.
bool about_two_runs(const std::string& failure) {
  return failure.starts_with("same-bits-");
}

// Properties that say again what another kind says of the run itself.
bool about_the_run(const std::string& failure) {
  return failure.starts_with("within-bound") || failure.starts_with("formula:");
}

constexpr FindingKindRow kKinds[] = {
    {FindingKind::violation, "an element is further from the exact value than its proved bound",
     [](const Verification& v) { return any_element(v, &OutputComparison::violation); }},
    {FindingKind::nonfinite, "NaN or infinity where the reference is finite",
     [](const Verification& v) { return any_element(v, &OutputComparison::nonfinite); }},
    {FindingKind::wrong_class, "the reference is infinite and the value is not that infinity",
     [](const Verification& v) { return any_element(v, &OutputComparison::wrong_class); }},
    {FindingKind::formula, "in exact arithmetic, too, the kernel's instructions give something else",
     [](const Verification& v) { return v.formula && v.formula->violated(); }},
    {FindingKind::trap, "the run ended by a trap, as at an address out of bounds",
     [](const Verification& v) { return v.trap && !hangs(v); }},
    {FindingKind::hang, "the run does not end", hangs},
    {FindingKind::check,
     "a race, a value never written, an address that leaves its variable, an index that wraps",
     [](const Verification& v) { return v.checks && !v.checks->findings.empty(); }},
    {FindingKind::bits, "two runs, or the GPU and the machine, differ in bits",
     [](const Verification& v) {
       return v.bits_differ > 0 ||
              std::any_of(v.properties_failed.begin(), v.properties_failed.end(), about_two_runs);
     }},
    {FindingKind::property, "a property of the operator does not hold (assay list properties)",
     [](const Verification& v) {
       return std::any_of(v.properties_failed.begin(), v.properties_failed.end(), [](const auto& failure) {
         return !about_two_runs(failure) && !about_the_run(failure);
       });
     }},
    {FindingKind::expected,
     "an output that the inputs' file holds is further from the exact value than the bound",
     expected_differs},
    {FindingKind::undecided, "the reference's enclosure is too wide to judge an element",
     [](const Verification& v) { return v.verdict == Verdict::undecided; }},
};

}  // namespace

bool expected_differs(const Verification& v) {
  return std::any_of(v.expected_outputs.begin(), v.expected_outputs.end(),
                     [](const OutputComparison& o) { return o.violation + o.nonfinite + o.wrong_class > 0; });
}

std::span<const FindingKindRow> finding_kinds() {
  return kKinds;
}

std::set<FindingKind> kinds_of(const Verification& v) {
  std::set<FindingKind> kinds;
  if (v.verdict == Verdict::pass || v.verdict == Verdict::domain) return kinds;
  for (const FindingKindRow& row : kKinds)
    if (row.holds(v)) kinds.insert(row.kind);
  // What no row knows must fail all the more.
  if (kinds.empty()) kinds.insert(FindingKind::property);
  return kinds;
}

}  // namespace assay
