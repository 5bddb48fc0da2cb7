// Which predicates do no more than guard the instruction after them, as compilers write a condition; which
// guards are conditions of loops, and what counts for them.
#pragma once
#include <cstddef>
#include <map>
#include <set>

#include "src/base/vm/code.h"

namespace assay {

/// Ops whose predicate the next op of their line is guarded by, or negates for one that is, and nothing else
/// reads before it is written again: to change the guard is to change them.
std::set<size_t> merely_guarding(const vm::Code&);

/// Guarded branches that end a loop or go on with it, and whether they end it where they are taken.
std::map<size_t, bool> loop_conditions(const vm::Code&);

/// Ops behind what an integer comparison of their line takes: what they make is counted, or limits a count. A
/// loop's variable is all that is moved into its register too.
std::set<size_t> counting(const vm::Code&);
/// Ops from `at` on that run before the op `until`.
std::set<size_t> ops_until(const vm::Code&, int32_t at, int32_t until);

}  // namespace assay
