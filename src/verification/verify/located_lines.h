// What may mend a program for a telling case, and which lines explain what is wrong there: in words, and
// ranked.
#pragma once
#include <climits>
#include <optional>
#include <string_view>
#include <vector>

#include "src/verification/diagnosis/suspect_lines.h"
#include "src/verification/verify/telling_case.h"

namespace assay {

/// Of what mends all: a slip in the source would be no more. What is less plain may only undo it.
inline constexpr int kDecision = 1, kPlain = 2;
/// With which the reason of a line ends of which a change was tried that mends everything.
inline constexpr std::string_view kAllRight = "all elements are right";

/// Repairs in words: of every element, of some, where a repaired comparison is used, and what repaired guards
/// decide.
struct RepairedLines {
  std::vector<SuspectLine> whole, partial, used, decided, made;
  int plainest = INT_MAX;  ///< Repair::simplicity of what mends all
};

/// What one program for the case says: changes that mend it, and lines that explain what is wrong.
struct Located {
  RepairedLines repaired;
  SuspectLines suspects;
};

/// A telling case, and the same for slices, where fewer values behind each wrong element say more: in few
/// tokens, or the same; and that with tiny gates, where gates are what is wrong.
struct ToldCases {
  const TellingCase& told;
  const TellingCase& sliced;
  const TellingCase* tiny = nullptr;
};

/// Lines that explain what is wrong. `seconds`: counted ones (counted_work.h), at most, of each part of the
/// search.
SuspectLines suspects_in(const ToldCases&, const vm::MachineOptions&, double seconds);
/// And what mends the program.
Located located(const ToldCases&, SuspectLines, const vm::MachineOptions&, double seconds);

/// The same without optimisation: there a statement that has no instruction of its own any more is still
/// seen. Changes are tried where no plain one has mended the optimised program. None where the fault is not
/// in both. Throws CannotCompile.
std::optional<Located> located_plainly(const Kernel&, const ToldCases&, const Located& optimised,
                                       const vm::MachineOptions&, double seconds);

/// Lines of which a changed instruction makes everything right, where the first such comparison is used, what
/// a repaired guard decides, and those whose values explain what is wrong. `plain`: null where there is none.
std::vector<SuspectLine> ranked(const Located& optimised, const Located* plain);

}  // namespace assay
