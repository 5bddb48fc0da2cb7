// What can be wrong with a run, one row each: its name, what --fail-on chooses from, the cause and the
// sentence that it gives, and what the run then comes to.
#pragma once
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/names.h"
#include "src/result/verification.h"

namespace assay {

enum class FindingKind : uint8_t {
  violation,
  nonfinite,
  wrong_class,
  formula,
  unlikely,
  trap,
  hang,
  check,
  bits,
  property,
  order,     ///< of sums by atomics
  expected,  ///< an output in the inputs' file; also the first word of its cause
  undecided,
  inconclusive,
};
constexpr std::array<std::string_view, 14> names_of(FindingKind) {
  return {"violation", "nonfinite", "class",    "formula", "unlikely", "trap",      "hang",
          "check",     "bits",      "property", "order",   "expected", "undecided", "inconclusive"};
}

struct FindingKindRow {
  FindingKind kind;
  std::string_view text;        ///< what it is
  std::string_view cause_word;  ///< its causes begin so: "wrong-class" of "wrong-class/o"
  bool (*holds)(const Verification&);
  /// Where it holds, what shrinking keeps: "formula/o"; else empty.
  std::string (*cause)(const Verification&);
  /// Of one output: "3 non-finite elements of o"; null where it is not about elements.
  std::string (*of_output)(const OutputComparison&) = nullptr;
  /// Of the run, in words; null where it is about elements.
  std::string (*of_run)(const Verification&) = nullptr;
  Verdict verdict = Verdict::finding;  ///< of a run that nothing worse is wrong with; exit statuses follow
  bool fails = true;                   ///< gives exit status 1 where --fail-on does not choose
};

/// An output that the inputs' file holds is outside the bound; that is nothing of a kernel.
bool expected_differs(const Verification&);

/// All kinds, the worst first: the first that holds gives the run its verdict and cause. A finding has at
/// least one of them, and may have several.
std::span<const FindingKindRow> finding_kinds();
/// The kinds that hold; for a run that passed those that make no finding unless asked for (--fail-on order);
/// none out of domain.
std::set<FindingKind> kinds_of(const Verification&);
/// What is wrong, in words: of each output, then of the run.
std::vector<std::string> faults_of(const Verification&);

}  // namespace assay
