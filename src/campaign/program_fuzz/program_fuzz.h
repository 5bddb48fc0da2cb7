// Fuzzing a program that no operator describes: sizes and values are drawn within what its launch file says,
// every run is checked as `assay check` does, and what is found is made small.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "src/capsule/launch_file.h"
#include "src/result/fuzz_run.h"
#include "src/verification/verify/check_program.h"

namespace assay {

/// What one run is made of; with the launch file it repeats it.
struct ProgramDraw {
  std::map<std::string, int64_t> sizes;
  uint64_t seed = 1;
  std::string variation;  ///< variation.h; empty: values as drawn
};
/// "--size n=3,rows=1 --seed 7 --vary x=spike".
std::string options_text(const ProgramDraw&);

struct ProgramFuzzOptions {
  double time_s = 60;
  int64_t cases = 0;  ///< in place of time; 0: time
  uint64_t seed = 1;
  int jobs = 0;  ///< 0: as many as cores
  ProgramCheckOptions check;
  std::string replay;  ///< the command that a draw's options complete: "assay check FILE"
  /// At most so many bytes of tensors in one run; what is larger is not drawn.
  int64_t most_bytes = int64_t{256} << 20;
  uint64_t most_instructions = 200'000'000;  ///< lane-instructions; larger runs count, but are not repeated
  const std::atomic<int>* interrupted = nullptr;
};

struct ProgramFuzzListener {
  std::function<void(double fraction, int64_t cases, size_t findings)> progress;
  std::function<void(const Verification&)> found;  ///< one per cause, shrunk
};

/// Findings in the order of drawing, one per cause, the first that was drawn of it, each shrunk for at most a
/// fifth of the time. In FuzzRun::domain are the draws that were not run: too large, or no launch at their
/// sizes. With `cases` the same seed gives the same findings, however many jobs there are.
/// Throws BadInput where no drawn sizes are accepted, or nothing could be run.
FuzzRun fuzz_program(const LaunchFile&, const ProgramFuzzOptions&, const ProgramFuzzListener&);

}  // namespace assay
