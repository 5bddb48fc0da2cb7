// Options that say where a result goes, and the exit status it means.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "reports/console.h"
#include "src/result/verdict.h"

namespace CLI {
class App;
}

namespace assay::cli {

class OutputOptions {
 public:
  void add_to(CLI::App&);
  /// Throws BadInput where they could not be written after a long run, or would replace a result of another
  /// kind than `kind`; empty: whatever stands there.
  void check(std::string_view kind = {}) const;
  bool wanted() const { return !json_.empty() || !report_.empty(); }
  /// Writes --json and --report, where asked for. Both are tried; the first that fails is thrown.
  void write(const nlohmann::json& result) const;
  /// A file of that ending beside the one of --json; empty where that is none.
  std::filesystem::path beside_json(const std::string& ending) const;
  /// Where people read: standard output, or standard error where --json - takes standard output.
  Console console() const;
  /// 0 pass; 1 finding, and undecided without --allow-undecided; 2 all inputs out of domain.
  int status(Verdict) const;
  bool allow_undecided() const { return allow_undecided_; }

 private:
  std::string json_, report_;
  bool allow_undecided_ = false;
};

}  // namespace assay::cli
