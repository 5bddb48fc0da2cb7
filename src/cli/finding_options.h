// Options of what findings mean to a caller that is no person: which of them fail, and the forms they are
// handed on in.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "reports/console.h"
#include "src/result/finding_kind.h"
#include "src/result/verification.h"

namespace CLI {
class App;
}

namespace assay::cli {

class OutputOptions;

class FindingOptions {
 public:
  void add_to(CLI::App&);
  /// Throws BadInput for a kind or a host that there is not; to be called before a long run.
  void check() const;
  /// Writes what is asked for: JUnit, SARIF and the comment into files, annotations to the console. Every
  /// form is tried; the first that fails is thrown.
  void write(const nlohmann::json& result, const Console&) const;
  bool wanted() const { return !junit_.empty() || !sarif_.empty() || !comment_.empty(); }
  /// 1 where a finding has a kind that --fail-on names and no baseline knows it, else 0.
  int status(const std::vector<Verification>& findings, bool allow_undecided) const;

 private:
  std::set<FindingKind> failing() const;

  std::vector<std::string> fail_on_;
  std::string junit_, sarif_, comment_, annotations_;
};

}  // namespace assay::cli
