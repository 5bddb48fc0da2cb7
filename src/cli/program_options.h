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
  /// --size, --vary and, where the command has none of its own, --seed: of a launch file that stands in a
  /// kernel's place.
  void add_drawing_to(CLI::App&, bool with_seed);
  /// What stands in a kernel's place, and the options that it shares with kernels.
  void choose(const std::string& path, const std::string& ptx, const std::string& mutant);
  void set_seed(uint64_t seed) { seed_ = seed; }
  /// Reads the files; throws BadInput where they are not what they should be.
  const LaunchFile& file();
  Capsule load();
  /// Throws BadInput where one of the options of add_drawing_to is given: `kernel` stands in a file's place.
  void refuse_drawing(const std::string& kernel) const;
  /// Into the result: the file, sizes, seed, and the command that repeats the run.
  void describe(const Capsule&, Verification&) const;
  /// "FILE --ptx ...", for a shell.
  std::string replay_text() const;

 private:
  std::map<std::string, int64_t> chosen_sizes() const;

  std::string path_, vary_, mutant_;
  std::vector<std::string> ptx_, sizes_;
  uint64_t seed_ = 1;
  std::optional<LaunchFile> file_;
};

/// As a shell takes it: in quotes where it has blanks or other characters that a shell reads.
std::string shell_word(const std::string& text);

}  // namespace assay::cli
