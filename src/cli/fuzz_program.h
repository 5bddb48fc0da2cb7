// `assay fuzz FILE.json`: a launch file in a kernel's place.
#pragma once
#include <optional>
#include <string>

namespace assay::cli {

class EngineOptions;
class FindingOptions;
class OutputOptions;
struct ProgramFuzzBudget {
  double time_s = 60;
  int64_t cases = 0;
  uint64_t seed = 1;
  int jobs = 0;
};

/// The exit status.
int fuzz_launch_file(const std::string& path, const std::string& ptx, const ProgramFuzzBudget&,
                     const EngineOptions&, const OutputOptions&, const FindingOptions&);

}  // namespace assay::cli
