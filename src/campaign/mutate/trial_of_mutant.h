// One mutant on the cases that reach it, until one shows it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/campaign/mutate/plan_survey.h"
#include "src/campaign/mutate/population.h"
#include "src/result/mutation.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

struct MutantTrial {
  const Kernel& kernel;
  const std::vector<CleanCase>& cases;
  const MutatedModule& module;
  ptx::Mutation mutation;
  vm::MachineOptions machine;  ///< of one thread
  /// Positions in `cases`, in the order to try them; those that do not come to the instruction are left out.
  const std::vector<size_t>& order;
  /// Cases of many sizes beside them, of which only memory is compared; null: none.
  const std::vector<MutationCase>* sizes = nullptr;
  /// Of what the kernel's plans pass; null: the cases alone say what is passed.
  const PlanSurvey* survey = nullptr;
  /// Asked before every run: true gives the mutant up; null: never.
  std::function<bool()> given_up = nullptr;
  /// Lane instructions at most, about, of the cases that are tried with other values, and of those at other
  /// sizes; twice as many of those that are searched for, ten times as many with other values of floats.
  uint64_t other_work = 400'000'000;
};

struct MutantResult {
  bool born = true;  ///< false: the machine refuses the changed text
  Mutant mutant;
  std::vector<size_t> tried;    ///< rows of the cases that ran
  bool killed_by_case = false;  ///< by the last of them
};
template <typename Io>
void fields(Io& io, MutantResult& x) {
  ASSAY_FIELD(born);
  ASSAY_FIELD(mutant);
  ASSAY_FIELD(tried);
  ASSAY_FIELD(killed_by_case);
}

/// On each case the bits are held against the kernel's own, and where they differ against the reference. What
/// no case shows is argued to be equivalent, or else tried under the checks and the properties on a few small
/// cases. Nothing where it was given up before that was known.
std::optional<MutantResult> try_mutant(const MutantTrial&, const SourceText&);

}  // namespace assay
