// What a program does where an optional input is absent, beside what it does with the number given that its
// absence stands for.
#pragma once
#include <optional>

#include "src/result/verification.h"
#include "src/verification/verify/telling_case.h"

namespace assay {

/// The cause of a case that is right, on real numbers, as soon as an absent gate is given as zeros, a rate as
/// ones or a state as zeros; none where no such input makes it right, where to give it is another problem, or
/// where the kernel runs other code without it.
std::optional<Diagnosis> absent_argument(const Kernel&, const TellingCase&, const vm::MachineOptions&);

}  // namespace assay
