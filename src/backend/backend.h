// run(plan, inputs) -> outcome, on the virtual machine or on a GPU.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace assay {

struct SourceLocation {
  std::string file;        ///< as in the PTX's .file
  int line = 0;
  int ptx_line = 0;
  std::string function;    ///< entry
};

/// A run that did not complete: out of bounds, misaligned, illegal barrier use, instruction budget exhausted.
struct Trap {
  std::string kind;         ///< "out-of-bounds", "misaligned", "barrier", "hang", "launch", ...
  std::string message;      ///< one line
  SourceLocation where;
  std::array<uint32_t, 3> block{}, thread{};
};

/// Smallest and largest argument an exponential saw in a run (finite ones; NaN counted).
struct ExponentRange {
  SourceLocation where;
  std::string instruction;   ///< "ex2.approx.ftz.f32"
  double min = 0, max = 0;
  uint64_t count = 0, nans = 0;
};

struct Outcome {
  std::optional<Trap> trap;
  TensorMap outputs;
  std::vector<ExponentRange> exponents;   ///< vm only
  uint64_t lane_instructions = 0;         ///< vm only
  double seconds = 0;                     ///< wall clock of the launches (cuda: events)
};

struct BackendOptions {
  std::string arch = "sm_90";
  int threads = 0;                        ///< 0: all cores
  uint64_t instruction_budget = 0;        ///< per warp; 0: a generous default
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;   ///< "vm sm_90", "cuda NVIDIA H200 (sm_90)"
  /// Outputs and workspaces are filled with 0xff bytes before the launches (NaN in every float format).
  virtual Outcome run(const Plan&, const TensorMap& inputs) = 0;
};

std::unique_ptr<Backend> make_vm_backend(const BackendOptions&);
/// Throws BadInput where no GPU or no driver is there, saying which.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&);
/// One line about the GPU or why there is none; never throws.
std::string describe_gpu();
bool gpu_available();

}  // namespace assay
