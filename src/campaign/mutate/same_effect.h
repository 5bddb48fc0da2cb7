// Whether a mutant that does something else leaves the same: run by run, in the set's cases and at other
// sizes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/campaign/mutate/clean_case.h"
#include "src/campaign/mutate/trial_of_mutant.h"

namespace assay {

struct GivenUp {};

/// The runs of one mutant.
struct MutantRuns {
  const MutantTrial& trial;
  std::shared_ptr<const std::string> text;  ///< of its module, changed
  int32_t ptx_line = 0;                     ///< that of the change

  void go_on() const;  ///< throws GivenUp where the trial is given up
  Program changed(const CleanCase&) const;
  vm::MachineOptions machine(const CleanCase&) const;
  const ptx::Function& own_function() const;
  bool launches_own(const Program&) const;
  bool goes_another_way(const CleanCase&) const;
};

/// `small`: positions of cases that reach the change, those that cost least first. Cases of one row differ in
/// formats alone and count once. Empty where it leaves something else anywhere, or too few cases tell.
///
/// Not a proof: where the way is another one the same bytes are read, written and left, without a finding of
/// the checks. To be asked where no tensor's values decide the way (steering.h).
std::string only_another_way(const MutantRuns&, const std::vector<size_t>& small);

/// A proof for all that the tensors may hold, at each size that is run; the sizes are drawn. Where the change
/// makes a difference the outputs are the same terms of the inputs (terms.h), the same bytes are written and
/// none is read that the kernel does not read, without a finding of the checks.
std::string only_other_steps(const MutantRuns&, const std::vector<size_t>& small);

}  // namespace assay
