// Mutation analysis of a kernel: how many small changes of its PTX the cases, the checks and the properties
// see.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "src/base/vm/machine.h"
#include "src/campaign/engine/shard.h"
#include "src/result/mutation.h"

namespace assay {

struct MutateOptions {
  int64_t mutants = 200;
  uint64_t seed = 1;                  ///< decides the run, whatever `jobs` is, unless the time ends it
  Shard shard;                        ///< every so many-th mutant, and its part of `mutants`
  std::vector<Direction> directions;  ///< of forward, backward; empty: all that the kernel has
  double time_s = 0;                  ///< 0: no limit. What is not classified then is "untried"
  int jobs = 0;                       ///< mutants in flight; 0: all cores
  int drawn = 320;  ///< candidates beside the table's cases; those stay that reach something new
  vm::MachineOptions machine;
  const std::atomic<int>* interrupted = nullptr;  ///< set from outside, as by a signal: the run ends early
  /// Classified mutants are appended here and read back when the same run is asked for again; empty: not
  /// kept.
  std::filesystem::path journal;
  std::string own;  ///< the options that name a kernel that is not ours
  /// These alone, each with its instruction as an earlier run had it; empty: drawn. Throws BadInput where one
  /// of them is none of the kernel's.
  std::map<std::string, std::string> again;
};

struct MutationProgress {
  std::string doing;  ///< "cases", "mutants"
  int64_t done = 0, of = 0, killed = 0, survived = 0;
};

/// `progress` is called from one thread at a time. Throws BadInput where the kernel has no such direction or
/// passes none of the cases.
MutationRun mutate(const Kernel&, const MutateOptions&,
                   const std::function<void(const MutationProgress&)>& progress);

}  // namespace assay
