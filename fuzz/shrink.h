// Shrinking: a smaller case with the same cause. Sizes first, then kinds and profiles, then single values to
// simple numbers. RapidCheck's shrinkables hold the candidates; the walk and its budget are ours.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "src/result/verification.h"

namespace assay {

/// The verification of a candidate, if the candidate fails with the same cause; nothing otherwise.
using SameCause = std::function<std::optional<Verification>(const Case&)>;

struct Shrunk {
  Verification smallest;
  int evaluations = 0;
  bool finished = false;  ///< no candidate is left; false: the budget ended it
};

/// Walks from `failing` to simpler cases while they keep the cause, at most `most_evaluations` of them tried.
Shrunk shrink(const Verification& failing, const Operator&, int most_evaluations, const SameCause&);

/// All candidates one step simpler than the case, simplest first. Each is valid for the operator.
std::vector<Case> simpler_cases(const Case&, const Operator&);

}  // namespace assay
