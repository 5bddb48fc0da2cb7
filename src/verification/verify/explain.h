// From what a run showed to where it comes from: origins, named causes, mutated meanings.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "src/base/vm/exact_run.h"
#include "src/verification/verify/companion.h"
#include "src/verification/verify/verify.h"

namespace assay {

/// One run beside its reference; `problem` and `reference` are empty after a trap.
struct JudgedRun {
  const Kernel& kernel;
  Backend& backend;  ///< for further cases, where this one is too small to tell
  const Program& plan;
  const Operator& op;
  const Problem& problem;  ///< with the arithmetic that the kernel declares, exact cases too
  const TensorMap& inputs;
  const Outcome& outcome;
  const ReferenceResult& reference;
  const vm::ExactRun* exact = nullptr;  ///< null: the formula was not judged
  /// Of a plan without code of its own: what it launched, to be traced in its place.
  const LaunchedRun* launched = nullptr;

  const Program& traced() const { return launched ? launched->program : plan; }
  const TensorMap& traced_inputs() const { return launched ? launched->inputs : inputs; }
};

/// The element furthest beyond its bound; none where all are within theirs.
std::optional<std::pair<std::string, int64_t>> violating_element(const Verification&);

/// Where the non-finite element was born, and the named causes that fit all the evidence, best first. Gives
/// the input that the first cause says is read otherwise than it should be; empty where it is about none.
std::string explain(const JudgedRun&, const VerifyOptions&, Verification&);

/// The causes of a finding whose own values are right: what its failed properties say, and the meanings that
/// fit the runs which these derived, and further cases of the same kernel, whose values are wrong.
void explain_properties(const Kernel&, Backend&, const VerifyOptions&, const std::vector<DerivedRun>& derived,
                        Verification&);

/// The causes of what a run of some blocks did wrong: a trap, or what the checks saw.
void explain_some_blocks(const Operator&, Verification&);

}  // namespace assay
