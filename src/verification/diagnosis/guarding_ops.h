// Which predicates do no more than guard the instruction after them, as compilers write a condition.
#pragma once
#include <cstddef>
#include <set>

#include "src/base/vm/code.h"

namespace assay {

/// Ops whose predicate the next op of their line is guarded by, or negates for one that is, and nothing else
/// reads before it is written again: to change the guard is to change them.
std::set<size_t> merely_guarding(const vm::Code&);

}  // namespace assay
