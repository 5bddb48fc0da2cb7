// Forms whose rows are of the whole warp, but which are functions of a thread's registers: comparisons and
// logic with a predicate, video instructions.
#pragma once
#include <optional>
#include <string>

#include "tools/fidelity/form.h"

namespace assay::fidelity {

std::optional<Form> composed_form(const std::string& name);

}  // namespace assay::fidelity
