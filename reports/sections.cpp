// The sections of a verification, and where each form has them. A new one is declared here and put into the
// lists of the forms that it has.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/markup.h"
#include "reports/section.h"

namespace assay {

namespace sections {
extern const Section accumulated_decay, births, checks, diagnosis, domain, element_slice, expected_outputs,
    exponents, formula, origin, origins, outputs, partial, power, program, properties, repeats, rounding,
    shadow, suspect_lines, timing, trap, triage, unexplained, worst_elements;
}  // namespace sections

const nlohmann::json* part_of(const nlohmann::json& verification, const Section& section) {
  const auto found = verification.find(section.field);
  const nlohmann::json* part = found != verification.end() ? &*found
                               : section.later             ? nullptr
                                                           : &field_of(verification, section.field);
  return part && !part->is_null() && !part->empty() ? part : nullptr;
}

std::string unbounded_text(const std::string& output, int64_t by_formula, int64_t elements) {
  if (by_formula == 0) return "";
  return fmt::format("{} of {} elements of {} have no finite bound: the formula alone decides them",
                     by_formula, elements, output);
}

Sections sections_of_page() {
  using namespace sections;
  static constexpr const Section* kOrder[] = {
      &properties,        &checks,         &domain,        &trap,        &origin,
      &origins,           &triage,         &diagnosis,     &unexplained, &suspect_lines,
      &outputs,           &formula,        &rounding,      &power,       &expected_outputs,
      &accumulated_decay, &worst_elements, &element_slice, &shadow,      &exponents,
      &program,           &births,         &repeats};
  return kOrder;
}

Sections sections_of_markdown() {
  using namespace sections;
  static constexpr const Section* kOrder[] = {
      &properties,  &domain,        &trap,          &checks, &formula,          &rounding,
      &origin,      &origins,       &element_slice, &shadow, &triage,           &diagnosis,
      &unexplained, &suspect_lines, &outputs,       &power,  &expected_outputs, &accumulated_decay,
      &program,     &births,        &repeats};
  return kOrder;
}

Sections sections_of_console() {
  using namespace sections;
  static constexpr const Section* kOrder[] = {
      &trap,    &partial, &program,       &checks, &properties,        &repeats,        &births,
      &outputs, &formula, &rounding,      &power,  &accumulated_decay, &worst_elements, &expected_outputs,
      &origin,  &origins, &element_slice, &triage, &diagnosis,         &unexplained,    &suspect_lines};
  return kOrder;
}

Sections sections_of_notes() {
  using namespace sections;
  static constexpr const Section* kOrder[] = {&exponents, &timing, &checks};
  return kOrder;
}

Sections sections_by_weight() {
  using namespace sections;
  static constexpr const Section* kOrder[] = {&diagnosis,     &origin,        &trap,       &checks,
                                              &repeats,       &suspect_lines, &properties, &domain,
                                              &outputs,       &formula,       &rounding,   &expected_outputs,
                                              &element_slice, &shadow,        &unexplained};
  return kOrder;
}

}  // namespace assay
