// What can be wrong with a run, by name: what --fail-on chooses from.
#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "src/result/verification.h"

namespace assay {

struct FindingKind {
  std::string_view name, text;
  bool (*holds)(const Verification&);
};

/// The kind, and the first word of the cause, of outputs in the inputs' file that differ from the reference.
inline constexpr std::string_view kExpectedFault = "expected";

/// An output that the inputs' file holds is outside the bound; that is nothing of a kernel.
bool expected_differs(const Verification&);

/// All kinds. A finding has at least one of them, and may have several.
std::span<const FindingKind> finding_kinds();
/// Names of the kinds that hold; none for a run that passed or was out of domain.
std::set<std::string> kinds_of(const Verification&);

}  // namespace assay
