#include "src/result/finding_kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/base/program/source_place.h"

namespace assay {
namespace {

using Count = int64_t OutputComparison::*;

template <Count count>
bool any_element(const Verification& v) {
  return std::any_of(v.outputs.begin(), v.outputs.end(),
                     [](const auto& output) { return output.*count > 0; });
}

/// Of the first output with such an element.
template <Count count>
std::string element_cause(const Verification& v, std::string_view word) {
  for (const OutputComparison& output : v.outputs)
    if (output.*count > 0) return fmt::format("{}/{}", word, output.name);
  return {};
}

std::string elements(int64_t n, std::string_view what = "") {
  return fmt::format("{}{}{} element{}", n, what.empty() ? "" : " ", what, n == 1 ? "" : "s");
}

/// With where the first of them was born.
std::string nonfinite_cause(const Verification& v) {
  std::string cause = element_cause<&OutputComparison::nonfinite>(v, "nonfinite");
  if (cause.empty() || !v.origin) return cause;
  cause += fmt::format("/{}", name_of(v.origin->kind));
  return is_nowhere(v.origin->where) ? cause : cause + "/" + place_key(v.origin->where);
}

bool hangs(const Verification& v) {
  return v.trap && v.trap->kind == TrapKind::hang;
}

bool traps(const Verification& v) {
  return v.trap && !hangs(v);
}

std::string trap_cause(const Verification& v) {
  return fmt::format("trap/{}/{}", name_of(v.trap->kind), place_key(v.trap->where));
}

std::string trap_sentence(const Verification& v) {
  return fmt::format("{}: {}", name_of(v.trap->kind), v.trap->message);
}

bool checks_found(const Verification& v) {
  return v.checks && !v.checks->findings.empty();
}

/// Of a finding of the checks: its kind, and the line or the output that it names.
std::string check_cause(const Verification& v) {
  if (!checks_found(v)) return {};
  const CheckFinding& finding = v.checks->findings.front();
  const SourceLocation& where = finding.at.where;
  return fmt::format(
      "check/{}/{}", name_of(finding.kind),
      is_nowhere(where) ? finding.element.substr(0, finding.element.find('[')) : place_key(where));
}

std::string check_sentence(const Verification& v) {
  std::vector<CheckKind> kinds;
  for (const CheckFinding& finding : v.checks->findings)
    if (std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end()) kinds.push_back(finding.kind);
  return fmt::format("{}", fmt::join(names_of(kinds), ", "));
}

/// Of two runs of one plan that should have had the same bits: properties whose names begin so.
bool about_two_runs(const std::string& failure) {
  return failure.starts_with("same-bits-");
}

// Properties that say again what another kind says of the run itself.
bool about_the_run(const std::string& failure) {
  return failure.starts_with("within-bound") || failure.starts_with("formula:") ||
         failure.starts_with("declared-roundings:");
}

/// "NAME: what" -> NAME, of the first property that fails, where that one is about two runs or not.
std::string first_property(const Verification& v, bool two_runs) {
  if (v.properties_failed.empty() || about_two_runs(v.properties_failed.front()) != two_runs) return {};
  return v.properties_failed.front().substr(0, v.properties_failed.front().find(':'));
}

std::string property_cause(const Verification& v, bool two_runs) {
  const std::string name = first_property(v, two_runs);
  return name.empty() ? "" : "property/" + name;
}

std::string property_sentence(const Verification& v, bool two_runs) {
  const std::string name = first_property(v, two_runs);
  return name.empty() ? "" : name + " broken";
}

int64_t contradicted(const OutputComparison& o) {
  return o.violation + o.nonfinite + o.wrong_class;
}

std::string expected_cause(const Verification& v) {
  for (const OutputComparison& output : v.expected_outputs)
    if (contradicted(output) > 0) return fmt::format("{}/{}", name_of(FindingKind::expected), output.name);
  if (v.rounding)
    for (const RoundingOutput& output : v.rounding->expected)
      if (output.unlikely > 0) return fmt::format("{}/{}", name_of(FindingKind::expected), output.name);
  return {};
}

std::string expected_sentence(const Verification& v) {
  std::vector<std::string> parts;
  for (const OutputComparison& o : v.expected_outputs)
    if (const int64_t wrong = contradicted(o))
      parts.push_back(fmt::format("{} of {} in the file beyond the bound", elements(wrong), o.name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool formula_violated(const Verification& v) {
  return v.formula && v.formula->violated();
}

bool is_unlikely(const std::vector<RoundingOutput>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(), [](const RoundingOutput& o) { return o.unlikely > 0; });
}

/// Of the file's outputs too: nothing of a kernel is wrong then, and the cause says so.
std::string unlikely_cause(const Verification& v) {
  if (v.rounding)
    for (const RoundingOutput& output : v.rounding->outputs)
      if (output.unlikely > 0) return fmt::format("{}/{}", name_of(FindingKind::unlikely), output.name);
  return {};
}

/// What is proved to be wrong with an output needs no statistics.
bool is_proved_wrong(const Verification& v, const std::string& name) {
  const FormulaOutput* const formula = v.formula ? v.formula->output(name) : nullptr;
  return (formula && formula->violation > 0) ||
         std::any_of(v.outputs.begin(), v.outputs.end(), [&](const OutputComparison& o) {
           return o.name == name && o.violation + o.nonfinite + o.wrong_class > 0;
         });
}

bool is_contradicted(const Verification& v, const std::string& name) {
  return std::any_of(v.expected_outputs.begin(), v.expected_outputs.end(),
                     [&](const OutputComparison& o) { return o.name == name && contradicted(o) > 0; });
}

std::string unlikely_sentence(const Verification& v) {
  std::vector<std::string> parts;
  for (const RoundingOutput& o : v.rounding->outputs)
    if (o.unlikely > 0 && !is_proved_wrong(v, o.name)) parts.push_back(sentence_of(o.worst));
  for (const RoundingOutput& o : v.rounding->expected)
    if (o.unlikely > 0 && !is_contradicted(v, o.name))
      parts.push_back(sentence_of(o.worst) + ", in the file");
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool is_inconclusive(const Verification& v) {
  return v.power && v.power->inconclusive();
}

std::string inconclusive_cause(const Verification& v) {
  if (v.power)
    for (const auto* outputs : {&v.power->outputs, &v.power->expected})
      for (const PowerOutput& output : *outputs)
        if (output.inconclusive) return fmt::format("{}/{}", name_of(FindingKind::inconclusive), output.name);
  return {};
}

std::string inconclusive_sentence(const Verification& v) {
  std::vector<std::string> parts;
  for (const auto* outputs : {&v.power->outputs, &v.power->expected})
    for (const PowerOutput& o : *outputs)
      if (o.inconclusive)
        parts.push_back(fmt::format("{}{}: zeros{} would have passed", o.name,
                                    outputs == &v.power->expected ? " in the file" : "",
                                    o.zeros ? "" : " in its last quarter"));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string formula_cause(const Verification& v) {
  if (v.formula)
    for (const FormulaOutput& output : v.formula->outputs)
      if (output.violation > 0) return fmt::format("{}/{}", name_of(FindingKind::formula), output.name);
  return {};
}

std::string formula_sentence(const Verification& v) {
  std::vector<std::string> parts;
  for (const FormulaOutput& o : v.formula->outputs)
    if (o.violation > 0)
      parts.push_back(fmt::format("{} of {} wrong in exact arithmetic too", elements(o.violation), o.name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool order_matters(const Verification& v) {
  return std::any_of(v.repeats.begin(), v.repeats.end(),
                     [](const Repeat& r) { return r.differing > 0 && r.by_order_of_sums; });
}

const FindingKindRow kKinds[] = {
    {.kind = FindingKind::trap,
     .text = "the run ended by a trap, as at an address out of bounds",
     .cause_word = "trap",
     .holds = traps,
     .cause = [](const Verification& v) { return traps(v) ? trap_cause(v) : ""; },
     .of_run = trap_sentence},
    {.kind = FindingKind::hang,
     .text = "the run does not end",
     .cause_word = "trap",
     .holds = hangs,
     .cause = [](const Verification& v) { return hangs(v) ? trap_cause(v) : ""; },
     .of_run = trap_sentence},
    {.kind = FindingKind::nonfinite,
     .text = "NaN or infinity where the reference is finite",
     .cause_word = "nonfinite",
     .holds = any_element<&OutputComparison::nonfinite>,
     .cause = nonfinite_cause,
     .of_output =
         [](const OutputComparison& o) {
           return o.nonfinite ? fmt::format("{} of {}", elements(o.nonfinite, "non-finite"), o.name) : "";
         }},
    {.kind = FindingKind::wrong_class,
     .text = "the reference is infinite and the value is not that infinity",
     .cause_word = "wrong-class",
     .holds = any_element<&OutputComparison::wrong_class>,
     .cause =
         [](const Verification& v) {
           return element_cause<&OutputComparison::wrong_class>(v, "wrong-class");
         },
     .of_output =
         [](const OutputComparison& o) {
           return o.wrong_class ? fmt::format("{} of {}", elements(o.wrong_class, "wrongly finite"), o.name)
                                : "";
         }},
    {.kind = FindingKind::violation,
     .text = "an element is further from the exact value than its proved bound",
     .cause_word = "violation",
     .holds = any_element<&OutputComparison::violation>,
     .cause =
         [](const Verification& v) { return element_cause<&OutputComparison::violation>(v, "violation"); },
     .of_output =
         [](const OutputComparison& o) {
           return o.violation ? fmt::format("{} of {} beyond the bound", elements(o.violation), o.name) : "";
         }},
    {.kind = FindingKind::formula,
     .text = "in exact arithmetic, too, the kernel's instructions give something else",
     .cause_word = "formula",
     .holds = formula_violated,
     .cause = formula_cause,
     .of_run = formula_sentence},
    {.kind = FindingKind::unlikely,
     .text = "the errors of an output, or of a part of it, are not explained by the declared roundings: "
             "statistical",
     .cause_word = "unlikely",
     .holds =
         [](const Verification& v) {
           return v.rounding && (is_unlikely(v.rounding->outputs) || is_unlikely(v.rounding->expected));
         },
     .cause = unlikely_cause,
     .of_run = unlikely_sentence},
    {.kind = FindingKind::check,
     .text = "a race, a value never written, an address that leaves its variable, an index that wraps",
     .cause_word = "check",
     .holds = checks_found,
     .cause = check_cause,
     .of_run = check_sentence},
    {.kind = FindingKind::bits,
     .text = "two runs, or the GPU and the machine, differ in bits",
     .cause_word = "property",
     .holds =
         [](const Verification& v) {
           return v.bits_differ > 0 ||
                  std::any_of(v.properties_failed.begin(), v.properties_failed.end(), about_two_runs);
         },
     .cause = [](const Verification& v) { return property_cause(v, true); },
     .of_run = [](const Verification& v) { return property_sentence(v, true); }},
    {.kind = FindingKind::property,
     .text = "a property of the operator does not hold (assay list properties)",
     .cause_word = "property",
     .holds =
         [](const Verification& v) {
           return std::any_of(
               v.properties_failed.begin(), v.properties_failed.end(),
               [](const auto& failure) { return !about_two_runs(failure) && !about_the_run(failure); });
         },
     .cause = [](const Verification& v) { return property_cause(v, false); },
     .of_run = [](const Verification& v) { return property_sentence(v, false); }},
    {.kind = FindingKind::expected,
     .text = "an output that the inputs' file holds is further from the exact value than the bound",
     .cause_word = "expected",
     .holds = expected_differs,
     .cause = expected_cause,
     .of_run = expected_sentence},
    {.kind = FindingKind::undecided,
     .text = "the reference's enclosure is too wide to judge an element",
     .cause_word = "undecided",
     .holds =
         [](const Verification& v) {
           return any_element<&OutputComparison::undecided>(v) ||
                  (v.verdict == Verdict::undecided && !is_inconclusive(v));
         },
     .cause =
         [](const Verification& v) { return element_cause<&OutputComparison::undecided>(v, "undecided"); },
     .of_output =
         [](const OutputComparison& o) {
           return o.undecided ? fmt::format("{} of {}", elements(o.undecided, "undecided"), o.name) : "";
         },
     .verdict = Verdict::undecided},
    {.kind = FindingKind::inconclusive,
     .text = "zeros in place of an output would have passed every verdict, though it is not zero",
     .cause_word = "inconclusive",
     .holds = is_inconclusive,
     .cause = inconclusive_cause,
     .of_run = inconclusive_sentence,
     .verdict = Verdict::undecided},
    {.kind = FindingKind::order,
     .text = "outputs depend on the order in which atomics add floats, and on nothing else",
     .cause_word = "order",
     .holds = order_matters,
     .cause = [](const Verification&) { return std::string(); },  // a pass, but for those who ask
     .of_run =
         [](const Verification&) { return std::string("sums by atomics depend on the order of blocks"); },
     .verdict = Verdict::pass,
     .fails = false},
};

}  // namespace

bool expected_differs(const Verification& v) {
  return (v.rounding && is_unlikely(v.rounding->expected)) ||
         std::any_of(v.expected_outputs.begin(), v.expected_outputs.end(),
                     [](const OutputComparison& o) { return contradicted(o) > 0; });
}

std::span<const FindingKindRow> finding_kinds() {
  return kKinds;
}

std::set<FindingKind> kinds_of(const Verification& v) {
  std::set<FindingKind> kinds;
  if (v.verdict == Verdict::domain) return kinds;
  for (const FindingKindRow& row : kKinds)
    if ((v.verdict != Verdict::pass || row.verdict == Verdict::pass) && row.holds(v)) kinds.insert(row.kind);
  // What no row knows must fail all the more.
  if (kinds.empty() && v.verdict != Verdict::pass) kinds.insert(FindingKind::property);
  return kinds;
}

std::vector<std::string> faults_of(const Verification& v) {
  if (v.trap) return {trap_sentence(v)};  // of a run that did not end no value is judged
  std::vector<std::string> faults;
  const auto add = [&](std::string text) {
    if (!text.empty()) faults.push_back(std::move(text));
  };
  for (const OutputComparison& output : v.outputs)
    for (const FindingKindRow& row : kKinds)
      if (row.of_output) add(row.of_output(output));
  for (const FindingKindRow& row : kKinds)
    if (row.of_run && row.holds(v)) add(row.of_run(v));
  return faults;
}

}  // namespace assay
