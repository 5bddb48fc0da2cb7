// The tensors of a launch file: shapes, and values drawn, listed or read.
#pragma once
#include <optional>
#include <string>

#include "src/base/document/expression.h"
#include "src/base/document/json_node.h"
#include "src/base/tensor/tensor.h"
#include "src/base/tensor/tensor_layout.h"
#include "src/capsule/capsule.h"
#include "src/capsule/launch_folder.h"

namespace assay {

struct LaunchTensor {
  enum class Use : uint8_t { in, in_out, out, workspace };
  Tensor tensor;       ///< without data where it has no values
  bool holds = false;  ///< has values before the run
  Use use = Use::in;
  std::optional<DrawnRange> drawn;  ///< values drawn at random
  bool fixed = false;               ///< said to be read only
  bool partly = false;              ///< need not be written whole
  std::optional<TensorLayout> layout;
  std::string variable;  ///< of a module, in place of a buffer of its own
  std::string storage;   ///< the tensor in whose bytes it lies; or empty
  int64_t offset = 0;    ///< there, in bytes
};

/// Elements that a tensor of a launch file may have. Fuzzers of the reader lower it.
extern int64_t most_launch_elements;

/// By the names of formats ("bf16") and by those of PyTorch, NumPy and PTX ("bfloat16", "int32", "f32").
/// Unsigned and signed integers of a size are the same bytes; 8-bit types are u8.
Dtype dtype_of(const JsonNode&);

/// `folder`: where files are that the document names. `large_stay`: values of more than kLargestHeld bytes
/// are drawn, or read, element by element where they are asked for. Throws BadInput naming the place.
LaunchTensor read_launch_tensor(const std::string& name, const JsonNode&, const ExpressionScope&,
                                const LaunchFolder& folder, uint64_t seed, bool large_stay = false);

}  // namespace assay
