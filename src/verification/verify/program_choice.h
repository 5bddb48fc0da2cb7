// Which program without an operator is run: a launch file, its PTX, sizes, values and seed, as the command
// line and the Python package name them.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/capsule/launch_file.h"
#include "src/result/verification.h"

namespace assay {

struct ProgramChoice {
  std::string path;                                    ///< of a launch file, a folder with one, or a capsule
  std::vector<std::string> ptx;                        ///< in place of what the launch file names
  std::vector<std::pair<std::string, int64_t>> sizes;  ///< those chosen; the last of a name counts
  std::string vary;                                    ///< "x=spike,y=zeros" (src/capsule/variation.h)
  uint64_t seed = 1;                                   ///< of tensors drawn at random
  std::string mutant;                                  ///< with one instruction changed (kernels/mutant.h)

  /// Read once. Throws BadInput where it is not what it should be.
  const LaunchFile& file();
  /// `large_stay`: of a run of some blocks (LaunchFile::make).
  Capsule load(bool large_stay = false);
  /// Into the result: the file, sizes, seed, and the command that repeats the run.
  void describe(const Capsule&, Verification&) const;
  /// "FILE --ptx ...", for a shell.
  std::string replay_text() const;

 private:
  std::optional<LaunchFile> file_;
};

}  // namespace assay
