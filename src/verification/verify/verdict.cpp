#include "src/verification/verify/verdict.h"

#include <fmt/format.h>

#include "src/result/finding_kind.h"

namespace assay {
namespace {

bool is_nowhere(const SourceLocation& where) {
  return where.file.empty() && where.function.empty();
}

std::string place(const SourceLocation& where) {
  if (where.file.empty()) return fmt::format("{}:ptx:{}", where.function, where.ptx_line);
  return fmt::format("{}:{}", where.file, where.line);
}

/// Faults of single elements, worst first, with the name a cause carries.
struct ElementFault {
  const char* name;
  int64_t OutputComparison::*count;
};
constexpr ElementFault kFaults[] = {{"nonfinite", &OutputComparison::nonfinite},
                                    {"wrong-class", &OutputComparison::wrong_class},
                                    {"violation", &OutputComparison::violation}};

std::string element_cause(const Verification& v, const ElementFault& fault) {
  for (const OutputComparison& output : v.outputs) {
    if (output.*fault.count == 0) continue;
    std::string cause = fmt::format("{}/{}", fault.name, output.name);
    if (!v.origin || fault.count != &OutputComparison::nonfinite) return cause;
    cause += fmt::format("/{}", name_of(v.origin->kind));
    return is_nowhere(v.origin->where) ? cause : cause + "/" + place(v.origin->where);
  }
  return {};
}

/// "NAME: what" -> "property/NAME".
std::string property_cause(const std::string& failure) {
  return fmt::format("property/{}", failure.substr(0, failure.find(':')));
}

/// Of a finding of the checks: its kind, and the line or the output that it names.
std::string check_cause(const CheckFinding& finding) {
  const SourceLocation& where = finding.at.where;
  return fmt::format("check/{}/{}", finding.kind,
                     is_nowhere(where) ? finding.element.substr(0, finding.element.find('[')) : place(where));
}

std::string worst_fault(const Verification& v) {
  if (v.trap) return fmt::format("trap/{}/{}", name_of(v.trap->kind), place(v.trap->where));
  for (const ElementFault& fault : kFaults) {
    if (std::string cause = element_cause(v, fault); !cause.empty()) return cause;
  }
  if (v.formula)
    for (const FormulaOutput& output : v.formula->outputs)
      if (output.violation > 0) return fmt::format("{}/{}", name_of(FindingKind::formula), output.name);
  if (v.checks && !v.checks->findings.empty()) return check_cause(v.checks->findings.front());
  if (!v.properties_failed.empty()) return property_cause(v.properties_failed.front());
  for (const OutputComparison& output : v.expected_outputs)
    if (output.violation + output.nonfinite + output.wrong_class > 0)
      return fmt::format("{}/{}", name_of(FindingKind::expected), output.name);
  return {};
}

}  // namespace

void decide(Verification& v) {
  v.verdict = Verdict::pass;
  v.cause.clear();
  if (!v.domain.empty()) {
    v.verdict = Verdict::domain;
    return;
  }
  v.cause = worst_fault(v);
  if (!v.cause.empty()) {
    v.verdict = Verdict::finding;
    return;
  }
  for (const OutputComparison& output : v.outputs) {
    if (output.undecided == 0) continue;
    v.verdict = Verdict::undecided;
    v.cause = fmt::format("undecided/{}", output.name);
    return;
  }
}

void check_exponents(Verification& v) {
  std::vector<std::string> failed;
  for (const ExponentRange& range : v.exponents)
    if (range.max > 0)
      failed.push_back(fmt::format("exponents-nonpositive: {} at {} saw {}", range.instruction,
                                   place(range.where), range.max));
  v.properties_failed.insert(v.properties_failed.begin(), failed.begin(), failed.end());
}

}  // namespace assay
