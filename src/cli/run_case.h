// One case from the options to a result: what verify, trace and replay share.
#pragma once
#include "reports/console_chain.h"
#include "src/cli/case_options.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/output_options.h"
#include "src/verification/verify/verify.h"

namespace assay::cli {

/// Verifies on the engines and writes the command that repeats it into the result.
Verification run_case(KernelOptions&, const CaseToRun&, const Engines&, VerifyOptions);

/// How the inputs' file was read, where that is not as the operator has it.
void print_notes(const OutputOptions&, const CaseToRun&);

/// Prints the result for people and writes it where asked; the exit status. Inputs out of domain are bad
/// input: one line on standard error instead of a screen.
int conclude(const OutputOptions&, const FindingOptions&, const Verification&, size_t depth = kDefaultDepth);

}  // namespace assay::cli
