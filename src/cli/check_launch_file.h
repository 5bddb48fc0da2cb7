// A launch file run and checked: what `assay check` and `assay replay` share.
#pragma once
#include <string>
#include <vector>

namespace assay::cli {

class EngineOptions;
class FindingOptions;
class OutputOptions;
class ProgramOptions;

struct CheckAsked {
  std::string checks = "all", blocks, expect;
  std::vector<std::string> partly;  ///< outputs, beside those of which the launch file says so
  double tolerance = 0;
  bool strict_reads = false, once = false, precision = false;
};

/// The exit status.
int check_launch_file(ProgramOptions&, const CheckAsked&, const EngineOptions&, const OutputOptions&,
                      const FindingOptions&);

}  // namespace assay::cli
