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
  /// --size, --vary and, where the command has none of its own, --seed: of a launch file that stands in a
  /// kernel's place.
  void add_drawing_to(CLI::App&, bool with_seed);
  /// What stands in a kernel's place, and the options that it shares with kernels.
  void choose(const std::string& path, const std::string& ptx, const std::string& mutant);
  void set_seed(uint64_t seed) { choice_.seed = seed; }
  /// Reads the files; throws BadInput where they are not what they should be.
  const LaunchFile& file() { return choice_.file(); }
  Capsule load(bool large_stay = false);  ///< of a run of some blocks (LaunchFile::make)
  /// Throws BadInput where one of the options of add_drawing_to is given: `kernel` stands in a file's place.
  void refuse_drawing(const std::string& kernel) const;
  /// Into the result: the file, sizes, seed, and the command that repeats the run.
  void describe(const Capsule& capsule, Verification& v) const { choice_.describe(capsule, v); }
  /// "FILE --ptx ...", for a shell.
  std::string replay_text() const { return choice_.replay_text(); }

 private:
  ProgramChoice choice_;
  std::vector<std::string> sizes_;
};

}  // namespace assay::cli
