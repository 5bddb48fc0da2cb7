// A value beyond its bound: how much of its error is rounding, and how much another formula.
#pragma once
#include <optional>

#include "src/verification/diagnosis/diagnose.h"

namespace assay {

struct ErrorShares {
  const OutputComparison* output = nullptr;
  double whole = 0;     ///< |kernel - reference| of the output's worst element
  double rounding = 0;  ///< |kernel - its own exact arithmetic|
  double formula = 0;   ///< |its own exact arithmetic - reference|
};

/// Of the element that the shadow tells of, where it is the worst of its output and beyond its bound.
std::optional<ErrorShares> error_shares(const Evidence&);

/// All of that output was judged on real numbers, and no output's formula is wrong: what exact arithmetic
/// differs by can be explained, as by a constant's rounding.
bool is_formula_right(const Evidence&, const ErrorShares&);

}  // namespace assay
