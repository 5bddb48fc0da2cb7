// Options of the checks on the machine: what verify, trace and replay share.
#pragma once
#include <string>

#include "src/verification/verify/verify.h"

namespace CLI {
class App;
}

namespace assay::cli {

class CheckOptions {
 public:
  void add_to(CLI::App&);
  /// Throws BadInput for a check that there is not.
  void apply(VerifyOptions&) const;
  /// Throws BadInput for a check that there is not.
  vm::Checks parsed() const;
  /// Lane-instructions of runs that are run under the checks.
  uint64_t most_instructions() const;
  /// --checks as it was given.
  const std::string& names() const { return checks_; }
  bool strict_reads() const { return strict_reads_; }
  /// " --checks races --strict-reads"; empty where neither was given.
  std::string replay_suffix() const;
  /// Throws BadInput where an option was given that says how a claim is judged: a launch file has none.
  void refuse_of_claims(const std::string& launch_file) const;

 private:
  std::string checks_ = "all";
  bool strict_reads_ = false;
  std::string formula_ = "auto", rounding_ = "auto";
  const CLI::App* app_ = nullptr;
};

}  // namespace assay::cli
