// What is checked before anything is launched: the case, the kernel's limits, the inputs' domain.
#pragma once
#include <string>
#include <vector>

#include "kernels/claim.h"
#include "src/base/numerics/bad_input.h"

namespace assay {

/// The case resolved. Throws BadInput where it makes no sense for the operator or the kernel does not take
/// it: a format it lacks, K or V beyond its limits, a direction it does not have. The message says what it
/// does take.
ResolvedCase accepted(const Case&, const Kernel&);

/// A case of which nothing is wrong but that it does not fit here.
struct NotEnoughMemory : BadInput {
  using BadInput::BadInput;
};

/// Throws NotEnoughMemory where the case would need more memory than this machine, the control group it runs
/// in, or the process's limit of addresses has.
void require_memory(const ResolvedCase&);

/// Inputs outside the operator's domain (reference/domain.h), or log decays beyond the kernel's own limits.
/// One line per input with its first such element and their number.
std::vector<std::string> domain_faults(const TensorMap& inputs, const Kernel&, const Operator&);

}  // namespace assay
