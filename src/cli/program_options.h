// Options that name a program without an operator: a launch file, its PTX, sizes and seed.
#pragma once
#include <string>
#include <vector>

#include "src/verification/verify/program_choice.h"

namespace CLI {
class App;
}

namespace assay::cli {

class ProgramOptions {
 public:
  void add_to(CLI::App&);
  /// Reads the files; throws BadInput where they are not what they should be.
  const LaunchFile& file() { return choice_.file(); }
  Capsule load();
  /// Into the result: the file, sizes, seed, and the command that repeats the run.
  void describe(const Capsule& capsule, Verification& v) const { choice_.describe(capsule, v); }

 private:
  ProgramChoice choice_;
  std::vector<std::string> sizes_;
};

}  // namespace assay::cli
