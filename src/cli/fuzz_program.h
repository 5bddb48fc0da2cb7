// `assay fuzz FILE.json`: a launch file in a kernel's place.
#pragma once
#include <atomic>
#include <string>

#include "reports/console.h"
#include "src/result/baseline.h"
#include "src/result/fuzz_run.h"

namespace assay::cli {

class EngineOptions;
struct ProgramFuzzBudget {
  double time_s = 60;
  int64_t cases = 0;
  uint64_t seed = 1;
  int jobs = 0;
  const std::atomic<int>* interrupted = nullptr;
  int64_t min_cases = 0;               ///< FuzzRun::min_cases
  const Baseline* baseline = nullptr;  ///< FuzzOptions::baseline
};

/// Findings are printed as they come.
FuzzRun fuzz_launch_file(const std::string& path, const std::string& ptx, const ProgramFuzzBudget&,
                         const EngineOptions&, const Console&);

}  // namespace assay::cli
