// The result of one run as plain data. JSON is written from it and read back to it; renderers read only the
// JSON.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/plan/outcome.h"
#include "src/base/vm/check_report.h"
#include "src/base/vm/shadow_report.h"
#include "src/case/case.h"
#include "src/result/comparison.h"
#include "src/result/diagnosis.h"
#include "src/result/element_slice.h"
#include "src/result/origin.h"

namespace assay {

struct Verification {  ///< one run: `assay verify`, a replay, a fuzz finding
  std::string kernel;
  Case case_;
  std::string token;
  std::string replay;  ///< the command that repeats the run: "assay replay TOKEN", or verify with its files
  std::string backend;
  std::string arithmetic;  ///< the kernel's declared arithmetic, one line
  std::string verdict;     ///< "pass" | "finding" | "undecided" | "domain"
  std::string cause;       ///< verdict kind / output / origin: what shrinking keeps
  std::vector<OutputComparison> outputs;
  /// Outputs that the inputs' file holds, in place of the kernel's, against the reference.
  std::vector<OutputComparison> expected_outputs;
  std::vector<ErrorStatistics> statistics;  ///< one per output, where asked for; not in the document
  std::vector<AccumulatedDecay> accumulated_decay;  ///< one per output that is a log decay
  std::vector<std::string> properties_failed;  ///< "same-bits-twice: o[...] differs ..."
  std::vector<std::string> domain;  ///< inputs outside the domain: "g[b=0,t=3,h=0,k=1] = 0.5: above 0"
  std::optional<Trap> trap;
  std::optional<Origin> origin;
  std::vector<OriginGroup> origins;   ///< every distinct origin, where asked for
  std::optional<ElementSlice> slice;  ///< what stands behind one element, where asked for
  std::vector<Diagnosis> diagnosis;
  std::vector<ExponentRange> exponents;
  std::vector<BranchSides> branches;  ///< where the backend gives them; not written to JSON
  std::optional<std::string> partial;  ///< where only some blocks ran: which, and what is judged
  std::optional<CheckReport> checks;   ///< what the checking machine found, where it ran or should have
  std::optional<ShadowReport> shadow;  ///< the run beside exact arithmetic, where one was asked for
  uint64_t lane_instructions = 0;      ///< vm only
  double seconds_reference = 0, seconds_kernel = 0;
  std::optional<Triage> triage;        ///< where two engines ran
  int64_t bits_differ = -1;  ///< GPU against machine, where both ran; -1: not compared
  /// Where the kernel's first entry begins, where nothing more exact is known of a finding.
  std::optional<SourceLocation> entry;
  std::optional<bool> known;  ///< an earlier run found it too; absent where no baseline was given
};

nlohmann::json to_json(const Verification&);
Verification verification_from_json(const nlohmann::json&);

}  // namespace assay
