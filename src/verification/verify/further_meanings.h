// What further cases of a finding say of the meanings that fit it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "src/verification/diagnosis/meaning.h"

namespace assay {

/// What each of them says, by its text.
using OnFurther = std::vector<std::pair<std::string, Weighed>>;

/// Scores of `own` with what they say: a meaning has to fit all, by the same numbers, and one of them wholly.
/// Those that fit further cases alone join it. `own_is_silent`: nothing decides on this case itself.
void merge_further(const OnFurther&, bool own_is_silent, Weighed& own);

}  // namespace assay
