// What the verdicts on an output would have seen: the smallest uniform relative error delta, that is values
// (1 + delta) times the exact ones, that one of them does not allow.
#pragma once
#include "reference/operator.h"
#include "src/result/formula.h"
#include "src/result/rounding.h"
#include "src/verification/compare/rounding.h"

namespace assay {

/// `parts`: the statistic's, empty where it says nothing; `formula`: null where the formula was not judged.
PowerOutput power_of(const Tensor& got, const ReferenceOutput&, const OutputBlocks&,
                     const std::vector<PartStatistics>& parts, const FormulaOutput* formula);

}  // namespace assay
