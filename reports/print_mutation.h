// A mutation run on the console.
#pragma once
#include "reports/console.h"
#include "src/result/mutation.h"

namespace assay {

/// Was any mutant killed, or did any survive? Else score_of() says nothing.
bool has_score(const MutationRun&);
/// Counts by operator, then survivors by source line; with `details` every mutant.
void print_mutation_run(const Console&, const MutationRun&, bool details);

}  // namespace assay
