// A case with all that mutants share: inputs, plan, the kernel's own bits, the reference. Made once.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fuzz/properties.h"
#include "src/campaign/mutate/case_set.h"
#include "src/campaign/mutate/reach.h"
#include "src/result/verification.h"

namespace assay {

struct CleanCase {
  Case case_;
  size_t row = 0;
  std::string token;
  TensorMap inputs;
  Program plan;
  Outcome outcome;
  ReferenceResult reference;
  Reach reach;
  std::string fault;  ///< cause of the kernel's own verdict; empty: it passes
  /// Properties that hold for the kernel on this case, where they were asked for.
  std::vector<const Property*> properties;
};

/// What the outcome's bits say against the reference: verdict and cause, nothing explained. Of the outputs
/// those whose bits are not `known` already to pass; null: all.
Verification judged(const CleanCase&, const Kernel&, const Outcome&, const Outcome* known);

/// Inputs, plan and the kernel's own run alone; nothing where the kernel refuses the case.
std::optional<CleanCase> unjudged_case(const MutationCase&, const Kernel&, const vm::MachineOptions&);

/// Both trap, or neither does and no output of the first differs in the second.
bool same_bits(const Outcome&, const Outcome&);

/// Runs the kernel on one thread. Up to `most_for_properties` lane instructions also checks all properties
/// that compare two runs.
CleanCase make_clean_case(const MutationCase&, const Kernel&, const vm::MachineOptions&,
                          uint64_t most_for_properties);

/// What the kernel reaches on a case, without judging it.
Reach reach_of_case(const Case&, const Kernel&, const vm::MachineOptions&);

}  // namespace assay
