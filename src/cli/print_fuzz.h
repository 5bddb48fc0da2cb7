// A fuzz run for people: tightness, coverage and property tables, findings, one line of summary.
#pragma once
#include "reports/result.h"
#include "src/cli/console.h"

namespace assay::cli {

/// The whole run, the summary last.
void print_fuzz_run(const Console&, const FuzzRun&);
/// "pass" | "finding" | "undecided" | "domain", of all cases together.
std::string verdict_of(const FuzzRun&);

}  // namespace assay::cli
