// Source lines that the checks of the machine, or the trap that ended a run, say are wrong.
#pragma once
#include <string>
#include <vector>

#include "src/base/vm/machine.h"
#include "src/verification/verify/verify.h"

namespace assay {

/// So many lines of a finding are named.
inline constexpr size_t kLinesSaid = 3;

/// The values are finite and wrong.
bool is_finite_fault(const Verification&);
/// Right as it ran: only the checks have a finding.
bool is_checks_own(const Verification&);

/// "chunk.cu:142".
std::string place_of(const SourceLocation&);
bool same_place(const SuspectLine&, const SuspectLine&);
/// The outer one is the call by which the inner one was inlined: the same statement, seen from without and
/// from within.
bool goes_through(const SuspectLine& inner, const SuspectLine& outer);
bool holds(const std::vector<SuspectLine>&, const SuspectLine&);

/// Of a run that ended out of bounds, beside where it did: where an index wrapped, and what should have kept
/// the thread from there.
void put_trapped(const Program&, Verification&);
/// Where checks say what is wrong: barriers of a warp that would have to be the block's, and the places of
/// the findings; before all other lines. `seconds`: counted ones, at most.
void put_checked_first(const Program&, const TensorMap& inputs, const vm::MachineOptions&, double seconds,
                       Verification&);

}  // namespace assay
