// A sweep for people: the answers, then a table.
#pragma once
#include "reports/console.h"
#include "src/result/sweep_result.h"

namespace assay {

void print_sweep(const Console&, const Sweep&);

/// "finding" where any cell is one, else "undecided" where any is, "domain" where all are, else "pass".
Verdict verdict_of(const Sweep&);

}  // namespace assay
