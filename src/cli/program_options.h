// Options that name a program without an operator: a launch file, its PTX, sizes and seed.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/capsule/launch_file.h"
#include "src/result/verification.h"

namespace CLI {
class App;
}

namespace assay::cli {

class ProgramOptions {
 public:
  void add_to(CLI::App&);
  /// Reads the files; throws BadInput where they are not what they should be.
  const LaunchFile& file();
  Capsule load();
  /// Into the result: the file, sizes, seed, and the command that repeats the run.
  void describe(const Capsule&, Verification&) const;

 private:
  std::map<std::string, int64_t> chosen_sizes() const;

  std::string path_, vary_;
  std::vector<std::string> ptx_, sizes_;
  uint64_t seed_ = 1;
  std::optional<LaunchFile> file_;
};

}  // namespace assay::cli
