// What the plans of the scalar family share, whatever their mode: its operators differ in their gates only.
#pragma once
#include <string>
#include <vector>

#include "kernels/device/format_sizes.h"
#include "kernels/launch_tables.h"
#include "kernels/scalar/chunk_layout.h"
#include "kernels/scalar/gates.h"

namespace assay::scalar {

using namespace gated;

/// A plan being made: outputs, tables of sequences and gates are there to begin with.
class ScalarPlan {
 public:
  /// Throws BadInput where the case is outside scalar_limits(). `chunk`: tokens per chunk of the tables.
  ScalarPlan(const Member&, const std::string& mode, int64_t chunk, const ResolvedCase&,
             const TensorMap& inputs);

  const ResolvedCase& c;
  const TensorMap& inputs;
  const Sizes sizes;
  const Sequences sequences;
  Program plan;
  const ScalarGates gates;

  /// Launches from here on are those of kernels/simple_gla/<mode>.cu.
  void use(const std::string& mode);
  /// device::block_threads per block; heads, K and V follow the arguments.
  Launch& launch(const std::string& function, int64_t blocks, std::vector<Argument> arguments);
  /// The same with dynamic shared memory, and after V whether rows may be loaded 16 bytes at a time.
  Launch& tile_launch(const std::string& function, int64_t blocks, int64_t shared_bytes,
                      std::vector<Argument> arguments);

  PointerArgument input(const std::string& name) const { return input_or_null(inputs, name); }
  PointerArgument output(const std::string& name) const { return output_or_null(plan, name); }
  /// A new workspace; null where it has no bytes.
  PointerArgument workspace(const std::string& name, int64_t bytes) {
    return gated::workspace_of(plan, name, bytes);
  }
  device::FormatSizes format() const { return device::format_sizes(c.dtype); }
  /// Of one sequence's or chunk's and head's state, both sizes padded to multiples of 16.
  int64_t state_elements() const { return device::padded_state(sizes.K, sizes.V); }
  /// Blocks of the kernels that own a part of a state each.
  int64_t scan_blocks() const { return sizes.N * sizes.H * scan_parts(sizes.K, sizes.V); }
  float scale() const { return static_cast<float>(c.scale); }
};

/// What every kernel of the family accepts.
KernelLimits scalar_limits();

/// A row of kernels.def up to its plan and arithmetic.
Kernel scalar_kernel(const Member&, const std::string& mode);

}  // namespace assay::scalar
