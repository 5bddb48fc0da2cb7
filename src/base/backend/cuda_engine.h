// Runs plans on the GPU within this process. After an error of a running kernel the driver refuses all
// further work of the process ("the process must be terminated and relaunched", CUDA Driver API,
// CUDA_ERROR_ILLEGAL_ADDRESS), so the backend keeps an engine in a process of its own.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "src/base/backend/cuda_context.h"

namespace assay {

class CudaEngine {
 public:
  /// Throws BadInput where there is no GPU.
  explicit CudaEngine(std::vector<GpuBinary> binaries = {})
      : driver_(Driver::open()), context_(driver_, std::move(binaries)) {}

  /// `one_at_a_time` waits after every launch, so that a trap names it; otherwise a trap found while waiting
  /// for several launches has no function.
  Outcome run(const Program&, const TensorMap& inputs, bool one_at_a_time);
  /// Backend::time, or the trap.
  std::vector<double> time(const Program&, const TensorMap& inputs, int repeats, int warmups,
                           std::optional<Trap>* trap);
  /// Whether a kernel failed or hangs: this process can use the GPU no more.
  bool lost() const { return lost_; }

 private:
  double seconds_between(CUevent start, CUevent end) const;
  std::optional<Trap> finish(const Event& end, const std::string& function);

  Driver driver_;
  CudaContext context_;
  bool lost_ = false;
};

}  // namespace assay
