// The upper storey of the pipeline: what a kernel claims, held against what its program did.
#pragma once
#include <optional>

#include "kernels/claim.h"
#include "src/base/vm/exact_run.h"
#include "src/verification/verify/program_run.h"

namespace assay {

/// What the claim asks for; empty after a trap, and for a run of blocks whose tensors are not held.
struct Judgement {
  Problem problem;  ///< with the arithmetic that the kernel declares, exact cases too
  ReferenceResult reference;
};

/// Reference and bound of every output, the outputs against them; what the inputs' file says that they are,
/// likewise; and what the kernel promises of its exponentials.
Judgement judge(const Claim&, const TensorMap& inputs, const ProgramRun&, const VerifyOptions&,
                Verification&);

/// The outputs on real numbers against the reference: what no rounding excuses. The outputs themselves where
/// they are judged.
std::optional<vm::ExactRun> judge_formula(const Program&, const TensorMap& inputs, const ProgramRun&,
                                          const Judgement&, const VerifyOptions&, Verification&);

/// Is the formula of an output right in every element, and judged so finely that it decides?
bool formula_is_right(const Verification&, const OutputComparison&);

/// Elements that only lack a finite bound, of outputs whose formula is right in every element, and judged so
/// finely that it decides: the formula's verdict is theirs where together
/// they err by at most a quarter of the output's root mean square, and none by more than its largest value.
void settle_by_formula(const ProgramRun&, const Judgement&, Verification&);

/// Whether the declared roundings explain the errors of the outputs and of those of the inputs' file; then
/// what all verdicts together would have seen.
void judge_roundings(const Claim&, const ProgramRun&, const Judgement&, const VerifyOptions&, Verification&);

/// Whether other axes of the file's tensors make its outputs right, or another meaning of the operator does.
void explain_expected(const Claim&, const Judgement&, const TensorMap& inputs, const VerifyOptions&,
                      Verification&);

}  // namespace assay
