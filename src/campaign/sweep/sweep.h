// A sweep: one case varied over options, for one or several kernels on the same inputs.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/base/vm/launch.h"
#include "src/campaign/engine/shard.h"
#include "src/campaign/sweep/dimension.h"
#include "src/result/sweep_result.h"

namespace assay {

struct SweepOptions {
  std::vector<const Kernel*> kernels;  ///< the same operator each; the first is the one asked for
  Case base;                           ///< everything that is not swept
  std::vector<Dimension> dimensions;   ///< the first varies slowest
  int seeds = 3;                       ///< consecutive ones from the base's
  double tolerance = 0;                ///< kept in the result, for its answers
  Shard shard;                         ///< every so many-th point
  int jobs = 0;                        ///< runs at once; 0: all cores. Results do not depend on it
  vm::MachineOptions machine;          ///< of the run beside exact arithmetic
  std::string replay_suffix;           ///< what a replay line needs beside the token
  /// Finished points are appended here and read back when the same sweep is asked for again; empty: not kept.
  std::filesystem::path journal;
  const std::atomic<int>* interrupted = nullptr;
  /// After each point: share of the work done (by estimated cost), points done and in all, seconds gone.
  std::function<void(double fraction, int64_t done, int64_t points, double seconds)> progress;
};

/// Runs every point: kernel x settings x seed. Points that a kernel or the operator refuses are cells with
/// the verdict "refused"; BadInput where that holds for all. Interrupted: `complete` is false, what was done
/// is there.
Sweep sweep(const SweepOptions&, Backend&);

}  // namespace assay
