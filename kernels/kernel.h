// A kernel, its launch plan, and the registry. A plan is plain data: both backends execute the same one.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reference/operator.h"
#include "src/case/case.h"

namespace assay {

/// A kernel parameter: a tensor or workspace by name plus a byte offset, a null pointer, or a scalar.
struct PointerArgument {
  std::string buffer;    ///< input, output or workspace name; empty: null pointer
  int64_t offset = 0;    ///< bytes
};
using Argument = std::variant<PointerArgument, int32_t, int64_t, float, double>;

struct Workspace {
  std::string name;
  int64_t bytes = 0;
};

struct Launch {
  std::string module;      ///< key of Plan::modules
  std::string function;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t shared_bytes = 0;  ///< dynamic shared memory
  std::vector<Argument> arguments;
};

/// PTX text of one module; `path` is for messages only.
struct Module {
  std::string name;
  std::string path;
  std::shared_ptr<const std::string> ptx;
};

/// An output the plan writes: allocated, poisoned before the run, read back after it.
struct PlanOutput {
  std::string name;
  Dtype dtype;
  std::vector<Axis> axes;
};

struct Plan {
  std::string kernel;
  std::vector<Module> modules;
  std::vector<Workspace> workspaces;
  std::vector<PlanOutput> outputs;
  std::vector<Launch> launches;
};

/// What a kernel accepts; what is outside is bad input, named before any launch.
struct KernelLimits {
  std::vector<Dtype> dtypes, gate_dtypes;
  int64_t max_K = 256, max_V = 256;
  double gate_min = -1e4, gate_max = 0;
};

struct Kernel {
  std::string name;            ///< "gla.chunk"
  std::string operator_name;   ///< "gla"
  std::string summary;
  std::string arithmetic_text; ///< one line: operand formats, accumulator, where intermediates are rounded
  KernelLimits limits;
  /// A run split at a multiple of this many tokens and resumed from the state has the same bits (1: anywhere).
  int64_t resume_granularity = 1;
  /// True where the kernel promises that no ex2 ever sees an argument above 0; the machine checks it in every run.
  bool exponents_nonpositive = false;
  std::function<Plan(const Case&, const Operator&, const TensorMap& inputs)> plan;
  std::function<GatedArithmetic(const Case&)> arithmetic;
};

/// The kernels of kernels.def.
const std::vector<Kernel>& kernels();
/// "gla.chunk", or "gla.chunk@S1" (patched copy, compiled on demand with nvcc). Throws BadInput listing what there is.
const Kernel& find_kernel(std::string_view name);

}  // namespace assay
