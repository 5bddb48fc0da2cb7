// A fuzz run for people: tightness, coverage and property tables, findings, one line of summary.
#pragma once
#include "reports/console.h"
#include "src/result/fuzz_run.h"

namespace assay {

/// The run, a line per kernel and the summary last. `details`: each kernel's tables besides.
void print_fuzz_run(const Console&, const FuzzRun&, bool details);
/// "pass" | "finding" | "incomplete" (the run ended early) | "undecided" | "domain", of all cases together.
std::string_view verdict_of(const FuzzRun&);

}  // namespace assay
