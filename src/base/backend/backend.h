// run(program, inputs) -> outcome, on the virtual machine or on a GPU.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/program/outcome.h"
#include "src/base/program/program.h"

namespace assay {

struct BackendOptions {
  std::string arch = "sm_90";
  int threads = 0;                  ///< 0: all cores
  uint64_t instruction_budget = 0;  ///< per warp; 0: a generous default
  bool branches = false;            ///< of the machine: Outcome::branches is wanted
};

/// What a program without code of its own launched when it ran: a program with code, and its tensors by
/// name.
struct LaunchedRun {
  Program program;
  TensorMap inputs;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;  ///< "vm sm_90", "cuda NVIDIA H200 (sm_90)"
  /// May be called from several threads. Outputs and workspaces are filled with Program::poison before the
  /// launches.
  virtual Outcome run(const Program&, const TensorMap& inputs) = 0;
  /// Runs it once more, and says what was launched; nothing where it has code of its own, or nothing was.
  virtual std::optional<LaunchedRun> launched(const Program&, const TensorMap& inputs);
  /// Seconds of each of `repeats` runs of all launches, after `warmups` that are not counted. On a GPU:
  /// buffers are allocated and filled once, repeats follow each other without a pause and events separate
  /// them. Throws BadInput where a launch traps.
  virtual std::vector<double> time(const Program&, const TensorMap& inputs, int repeats, int warmups = 3);
};

std::unique_ptr<Backend> make_vm_backend(const BackendOptions&);
/// Throws BadInput where no GPU or no driver is there, saying which. The GPU is the first that the driver
/// lists (CUDA_VISIBLE_DEVICES chooses); the driver is libcuda.so.1, or the file that ASSAY_CUDA_DRIVER
/// names.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&);
/// One line about the GPU or why there is none ("NVIDIA H200 (sm_90), 139.8 GiB, CUDA 13.0", "none: ...");
/// never throws.
std::string describe_gpu();
bool gpu_available();
/// "sm_90", or empty without a GPU; never throws.
std::string gpu_arch();

}  // namespace assay
