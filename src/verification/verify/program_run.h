// The lower storey of the pipeline: what a program shows by being run. No operator, no reference and no
// claim: traps, checks, values that change from run to run or from engine to engine, inputs that it changes.
#pragma once
#include <optional>

#include "src/verification/verify/triage.h"
#include "src/verification/verify/verify.h"

namespace assay {

struct ProgramRun {
  Outcome outcome;
  std::optional<EngineEvidence> engines;  ///< where a peer ran
  std::optional<CheckReport> written;     ///< of a run of some blocks: which elements they have written
};

/// Fills in the fields of the result that need nothing else.
ProgramRun run_program(const Program&, const TensorMap& inputs, Backend&, const VerifyOptions&,
                       Verification&);

/// The run beside exact arithmetic, where it is small enough; `element`: one that the report tells of.
void shadow_program(const Program&, const TensorMap& inputs, const ProgramRun&, const VerifyOptions&,
                    const std::optional<std::pair<std::string, int64_t>>& element, Verification&);

/// Whose fault it is where engines differ; after the values are judged, which say whether the machine's are
/// right. Where bits differ and nobody has looked for races, the machine does.
void triage_program(const Program&, const TensorMap& inputs, const ProgramRun&, const VerifyOptions&,
                    Verification&);

}  // namespace assay
