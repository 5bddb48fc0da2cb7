// A section: one part of a verification, and what every form of a report says of it. Each has a file of its
// own in reports/sections/; sections.cpp lists them in the order in which each form has them.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "reports/console.h"
#include "src/result/verification.h"

namespace assay {

/// What a finding falls under in lists of them, as SARIF's rules are.
struct Rule {
  std::string name;  ///< "masked-lane-overflow"
  std::string text;  ///< one sentence
};

/// Forms that read the JSON leave a section out where its field is absent, null or empty; `part` is the
/// field. A form that says nothing of it has no function.
struct Section {
  const char* field;   ///< of the verification
  bool later = false;  ///< documents of earlier versions lack the field (ASSAY_LATER); else it must be there
  /// HTML. `pointer`: the JSON pointer of the verification inside the data of the page's charts. Headings are
  /// of `level` and more.
  std::string (*page)(const nlohmann::json& part, const std::string& pointer, int level) = nullptr;
  std::string (*markdown)(const nlohmann::json& part) = nullptr;
  /// On the console; `depth`: steps of a chain that are printed.
  void (*print)(const Console&, const Verification&, size_t depth) = nullptr;
  /// One dim line at the console's end.
  void (*note)(const Console&, const Verification&) = nullptr;
  /// Whole lines of plain text: what a failed test says in JUnit.
  std::string (*plain)(const nlohmann::json& part) = nullptr;
  /// One line a person reads first, in SARIF, annotations and comments; empty where this is not what is
  /// wrong. (The console's first line is faults_of of src/result/finding_kind.h, which counts every kind.)
  std::string (*headline)(const nlohmann::json& part) = nullptr;
  /// Absent where this is not what is wrong.
  std::optional<Rule> (*rule)(const nlohmann::json& part) = nullptr;
  /// The SourceLocation to point at; null where none is known.
  nlohmann::json (*place)(const nlohmann::json& part) = nullptr;
};

/// "4096 of 4096 elements of o have no finite bound: the formula alone decides them"; empty where all have.
std::string unbounded_text(const std::string& output, int64_t by_formula, int64_t elements);

/// The field that a section is about; null where there is nothing to say.
const nlohmann::json* part_of(const nlohmann::json& verification, const Section&);

using Sections = std::span<const Section* const>;
/// Each in the order of that form.
Sections sections_of_page();
Sections sections_of_markdown();
Sections sections_of_console();
Sections sections_of_notes();
/// What weighs most comes first: of `plain`, `headline`, `rule` and `place`.
Sections sections_by_weight();

}  // namespace assay
