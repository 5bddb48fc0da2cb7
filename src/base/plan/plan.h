// A launch plan: plain data that both engines, the machine and the GPU, execute the same way.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "src/base/tensor/tensor.h"
#include "src/base/tensor/tensor_layout.h"

namespace assay {

/// A kernel parameter: a tensor or workspace by name plus a byte offset, a null pointer, or a scalar. The address
/// of an input that is a view is that of its first element.
struct PointerArgument {
  std::string buffer;    ///< input, output or workspace name; empty: null pointer
  int64_t offset = 0;    ///< bytes
};
using Argument = std::variant<PointerArgument, int32_t, int64_t, float, double, int8_t, int16_t>;

struct Workspace {
  std::string name;
  int64_t bytes = 0;
  std::string copy_of;   ///< input whose elements it holds row by row; empty: none
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
  std::vector<Tensor> constants;   ///< made from the shapes (chunk tables); uploaded before the first launch, addressed by name
  std::vector<Launch> launches;
  std::map<std::string, TensorLayout> layouts;  ///< of inputs that are views; the others lie row by row
  /// Empty: all blocks of every launch. Else those that run (block_choice.h), on the machine only; outputs and
  /// workspaces beyond kLargestHeld bytes are then made page by page where they are touched.
  std::string blocks;
  /// Every byte of outputs and workspaces before the first launch; on the machine also of shared memory, local
  /// memory and registers at the start of a block. 0xff: NaN in every float format.
  uint8_t poison = 0xff;
};

}  // namespace assay
