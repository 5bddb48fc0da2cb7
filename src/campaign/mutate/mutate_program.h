// Mutation analysis of a program that no operator describes: what it gave itself is what its mutants are held
// against.
#pragma once
#include <atomic>
#include <functional>

#include "src/base/vm/machine.h"
#include "src/campaign/mutate/mutate.h"
#include "src/capsule/launch_file.h"
#include "src/result/mutation.h"

namespace assay {

struct ProgramMutateOptions {
  int64_t mutants = 200;
  uint64_t seed = 1;     ///< decides the run, whatever `jobs` is, unless the time ends it
  double time_s = 0;     ///< 0: no limit
  int jobs = 0;          ///< mutants in flight; 0: all cores
  int drawn = 40;        ///< sizes drawn beside the declared ones; those stay that reach something new
  double tolerance = 0;  ///< values that are off by less (expected_values.h) are within the bound; 0: no bit
  vm::MachineOptions machine;
  const std::atomic<int>* interrupted = nullptr;
};

/// A mutant is killed where on some sizes it traps, gives other values, or has a finding of `assay check`;
/// sizes at which the program itself has one are set aside. Mutant::token has the options that repeat it.
/// `progress` is called from one thread at a time. Throws BadInput where no sizes are left.
MutationRun mutate_program(const LaunchFile&, const ProgramMutateOptions&,
                           const std::function<void(const MutationProgress&)>& progress);

}  // namespace assay
