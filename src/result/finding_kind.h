// What can be wrong with a run, by name: what --fail-on chooses from.
#pragma once
#include <array>
#include <set>
#include <span>
#include <string_view>

#include "src/base/fields/names.h"
#include "src/result/verification.h"

namespace assay {

enum class FindingKind : uint8_t {
  violation,
  nonfinite,
  wrong_class,
  formula,
  trap,
  hang,
  check,
  bits,
  property,
  expected,  ///< an output in the inputs' file; also the first word of its cause
  undecided,
};
constexpr std::array<std::string_view, 11> names_of(FindingKind) {
  return {"violation", "nonfinite", "class",    "formula",  "trap",     "hang",
          "check",     "bits",      "property", "expected", "undecided"};
}

struct FindingKindRow {
  FindingKind kind;
  std::string_view text;
  bool (*holds)(const Verification&);
};

/// An output that the inputs' file holds is outside the bound; that is nothing of a kernel.
bool expected_differs(const Verification&);

/// All kinds. A finding has at least one of them, and may have several.
std::span<const FindingKindRow> finding_kinds();
/// The kinds that hold; none for a run that passed or was out of domain.
std::set<FindingKind> kinds_of(const Verification&);

}  // namespace assay
