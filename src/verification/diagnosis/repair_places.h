// Beside a change that mends a program: the statements that what is changed comes from, or goes to.
#pragma once
#include <functional>

#include "src/base/vm/code.h"
#include "src/verification/diagnosis/line_repair.h"

namespace assay {

/// Sets Repair::decides, branch, taker and maker. `simplicity`: of the change.
void note_places(const vm::Code&, const vm::OpChange&, int simplicity, const SourceText&,
                 const std::function<bool(const SourceLocation&)>& may_compute_wrong, Repair&);

}  // namespace assay
