// Which cases a mutant that none of them shows is looked at on more closely.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "src/campaign/mutate/clean_case.h"

namespace assay {

/// Lane instructions: with fewer a run has too few threads and tokens for the checks; with more they would
/// take seconds; those below the third are cheap.
constexpr uint64_t kLeastChecked = 20'000, kMostChecked = 20'000'000, kCheapChecks = 3'000'000;

/// Positions in `cases`; `reaching`: those that come to the instruction; `differing`: of these, where the
/// mutant gives other bits.
struct CaseChoice {
  const std::vector<CleanCase>& cases;
  const std::vector<size_t>&reaching, &differing;
  std::pair<std::string, int32_t> function;  ///< as in Reach::executed

  /// Those where the bits differ first, then those that cost least.
  std::vector<size_t> small() const;
  /// Small ones, the first of each kind of values, then of decays, before the others.
  std::vector<size_t> varied() const;
  /// The cheap ones, then those that show most of the function that the ones before them do not.
  std::vector<size_t> to_check() const;
};

}  // namespace assay
