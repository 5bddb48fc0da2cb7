// What fuzzing makes of one known defect: is it found without a hint, does the finding's token repeat it and
// leave the clean kernel silent, is its cause named, is the patched line the one a value is traced to.
#pragma once
#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/defect.h"
#include "src/base/backend/backend.h"
#include "src/base/vm/machine.h"
#include "src/result/verdict.h"

namespace assay {

struct DefectTrialOptions {
  double time_s = 60;  ///< of fuzzing; what compiling the defect takes comes on top
  int64_t cases = 0;   ///< instead of time, where not 0
  int jobs = 0;        ///< cases in flight; 0: all cores
  uint64_t seed = 1;
  Backend* backend = nullptr;
  vm::MachineOptions machine;
  const std::atomic<int>* interrupted = nullptr;
};

/// A finding's token run again: on the kernel that it names, and on the clean one.
struct TokenReplay {
  Verdict verdict = Verdict::undecided;
  std::string cause;  ///< "violation/o"
  std::string
      digest;  ///< of all output bits, 16 hex digits; "-" where the run trapped, or ran only a few blocks
  Verdict clean_verdict = Verdict::undecided;
  std::string clean_cause;

  bool holds() const { return verdict == Verdict::finding && clean_verdict == Verdict::pass; }
};
/// With every property and check, as `assay replay` does.
TokenReplay replay_token(const std::string& token, Backend&, const vm::MachineOptions&);

struct DefectTrial {
  std::string defect;  ///< "gla.chunk@S1"
  std::string patch;   ///< a number for the patch's text: a trial of another text does not count
  int64_t cases = 0;   ///< that fuzzing took until the finding, or until its time was over
  double seconds = 0, seconds_compiling = 0;
  std::string token;  ///< of the shrunk finding; empty where there is none
  TokenReplay replay;
  std::string cause;  ///< ranked first; empty: none was named
  bool cause_right = false;
  bool nonfinite = false;  ///< the finding is a NaN or an infinity
  /// Where that was born, or where the run trapped: "kernels/gla/chunk.cu:12"; of finite values the likeliest
  /// line.
  std::string line;
  std::vector<std::string> lines;  ///< that and, but of a birth, those named beside it
  bool line_declared = false;      ///< one of them is one that the patch declares
  /// Of finite values: one of them is in a statement that the patch changes (patched_lines), or declared.
  bool line_right = false;

  bool found() const { return !token.empty() && replay.holds(); }
};

/// The digest that DefectTrial::patch holds.
std::string digest_of(const Defect&);
/// Fuzzes until a finding is shrunk and its cause named well, or for a quarter of the time after one of which
/// less can be said. Throws BadInput as find_kernel and fuzz do.
DefectTrial try_defect(const Defect&, const DefectTrialOptions&);
/// In place of fuzzing: its recorded token is explained as fuzzing explains a shrunk finding. Throws BadInput
/// as find_kernel does.
DefectTrial explain_token(const Defect&, const std::string& token, const DefectTrialOptions&);

nlohmann::json to_json(const DefectTrial&);
DefectTrial defect_trial_from_json(const nlohmann::json&);

}  // namespace assay
