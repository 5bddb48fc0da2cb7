// The pipeline, in two storeys: a program is run (program_run.h: traps, checks, engines), then held against
// what its kernel claims (judgement.h: reference, bound, comparison); a finding is explained by both.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/base/vm/checks/checks.h"
#include "src/result/verification.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {

/// Multiplications of samples that sampling the declared roundings may take where nobody says.
inline constexpr double kUsualRoundingWork = 4e9;

/// What a verification ran, for those who compare other runs with it.
struct KeptRun {
  TensorMap inputs;  ///< where they were drawn
  Outcome outcome;
};

struct VerifyOptions {
  int threads = 0;          ///< 0: all cores
  bool twice = true;        ///< run the kernel twice and compare bits
  bool statistics = false;  ///< also the distribution of each output's errors (Verification::statistics)
  bool diagnose = true;     ///< walk back from a non-finite output element (on the machine) and name causes
  OriginOptions origin;     ///< of that walk
  /// At most so long, by counted work (src/base/numerics/counted_work.h), values beyond their bounds are
  /// compared with what mutated meanings of the operator would give
  /// (src/verification/diagnosis/meaning.h); 0: not at all.
  double meaning_seconds = 10;
  /// The element to walk back from, as (output, flat element); absent: the first non-finite one by output
  /// and index, or, with `first`, the one whose origin was executed first.
  std::optional<std::pair<std::string, int64_t>> element;
  bool first = false;
  bool all_origins = false;  ///< also group all non-finite elements by their origin (Verification::origins)
  /// Also slice the run behind `element`, or where there is none behind the worst element beyond its bound
  /// (Verification::slice).
  bool slice = false;
  const TensorMap* inputs = nullptr;  ///< instead of drawn ones
  /// What somebody says that the outputs are, held against the reference too
  /// (Verification::expected_outputs).
  const TensorMap* expected = nullptr;
  /// Run once more beside exact arithmetic (Verification::shadow), for launches of at most so many
  /// lane-instructions; 0: do not.
  uint64_t shadow_instructions = 0;
  /// Whether the formula is right (Verification::formula), for runs of at most so many lane-instructions; 0:
  /// do not ask. A kernel with a plan is asked at UINT64_MAX only.
  uint64_t formula_instructions = 100'000'000;
  /// The same, once that was asked, where nothing else decides, which is rare: an output whose zeros would
  /// pass; four times as many where no bound follows one.
  uint64_t formula_where_open = 500'000'000;
  /// Whether the declared roundings explain the errors (Verification::rounding), where sampling them takes
  /// at most so many multiplications of samples; 0: do not ask. Of a kernel that declares no roundings at
  /// HUGE_VAL only.
  double rounding_work = 0;
  bool power = false;  ///< say what the verdicts would have seen, and could not (Verification::power)
  /// Checks on the machine (Verification::checks), for runs of at most so many lane-instructions; none by
  /// default.
  vm::Checks checks = vm::Checks::none();
  uint64_t check_instructions = 200'000'000;
  /// A second backend whose bits must equal the first's (cuda against vm).
  Backend* peer = nullptr;
  /// Is given the run where it was one of all blocks; left as it is where nothing ran.
  std::optional<KeptRun>* kept = nullptr;
};

/// Runs one case. Bad input throws BadInput before anything is launched; every fault of the kernel is in the
/// result.
Verification verify(const Case&, const Kernel&, Backend&, const VerifyOptions& = {});

}  // namespace assay
