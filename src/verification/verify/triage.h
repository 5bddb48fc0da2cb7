// Whose fault it is where a GPU ran beside the machine: the kernel's, that of what was made of its PTX, or a
// race.
#pragma once
#include <cstdint>
#include <optional>

#include "src/base/vm/check_report.h"
#include "src/result/diagnosis.h"

namespace assay {

/// What the engines showed of one case.
struct EngineEvidence {
  bool outside = false;              ///< the machine's values are beyond the bound, not finite, or it trapped
  int64_t differing = 0;             ///< elements whose bits differ between GPU and machine
  bool one_trapped = false;          ///< only one of the two engines trapped
  int peer_runs = 1;                 ///< runs on the GPU
  int64_t peer_differing = 0;        ///< elements that differ between two of them, at most
  bool checked_races = false;        ///< the checking machine looked for races
  std::optional<CheckFinding> race;  ///< what it found
};

/// The table of docs/verdicts.md: a race where the GPU's runs differ or the checking
/// machine found one beside differing bits; the kernel where the machine itself is outside; compiler or
/// hardware where the bits differ and nothing else does. "none" where neither engine shows a fault.
Triage triage_of(const EngineEvidence&);

}  // namespace assay
