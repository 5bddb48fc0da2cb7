// What is checked before anything is launched: the case, the kernel's limits, the inputs' domain.
#pragma once
#include <string>
#include <vector>

#include "kernels/claim.h"

namespace assay {

/// The case resolved. Throws BadInput where it makes no sense for the operator or the kernel does not take it: a format
/// it lacks, K or V beyond its limits, a direction it does not have. The message says what it does take.
ResolvedCase accepted(const Case&, const Kernel&);
void require_accepted(const Case&, const Kernel&, const Operator&);

/// Throws BadInput where the case would need more memory than this machine, or the control group it runs in,
/// has.
void require_memory(const ResolvedCase&);

/// Inputs outside the operator's domain (reference/domain.h), or log decays beyond the kernel's own limits.
/// One line per input with its first such element and their number.
std::vector<std::string> domain_faults(const TensorMap& inputs, const Kernel&, const Operator&);

/// program_of for an accepted case.
Program plan_of(const Case&, const Kernel&, const Operator&, const TensorMap& inputs);

}  // namespace assay
