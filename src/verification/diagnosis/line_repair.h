// Does a change of the instructions of one source line make a program right?
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "src/base/program/outcome.h"
#include "src/base/program/program.h"

namespace assay {

/// Mutants of a line (src/base/mutation), in which all instructions of one opcode that the line has in the
/// entries that are launched change alike. `is_right` runs the changed program; `late` ends the
/// search. The first that is right, as "mov.f32 ... for selp.f32 ..."; none where no mutant is.
std::optional<std::string> repair_of(const Program&, const SourceLocation& line,
                                     const std::function<bool(const Program&)>& is_right,
                                     const std::function<bool()>& late);

}  // namespace assay
