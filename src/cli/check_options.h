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
  /// --checks as it was given.
  const std::string& names() const { return checks_; }

 private:
  std::string checks_ = "all";
  bool strict_reads_ = false;
  std::string formula_ = "auto", rounding_ = "auto";
  const CLI::App* app_ = nullptr;
};

}  // namespace assay::cli
