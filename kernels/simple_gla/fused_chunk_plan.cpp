// The plans of simple_gla.fused_chunk and of the operators it serves.
#include <fmt/format.h>

#include "kernels/gated/launch_tables.h"
#include "kernels/simple_gla/chunk_plan.h"
#include "kernels/simple_gla/gates.h"

namespace assay {
namespace {

using namespace gated;

constexpr int64_t columns = 32;  ///< value channels per block

/// Key channels the serving function holds: the smallest that is enough.
int64_t key_capacity(const Sizes& s) {
  return s.K <= 64 ? 64 : s.K <= 128 ? 128 : 256;
}

/// As FusedShared in fused_chunk.cuh.
uint32_t shared_bytes(Dtype dtype) {
  const int64_t stages = dtype == Dtype::fp32 ? 1 : 2;
  return static_cast<uint32_t>(stages * (2 * tile_bytes(dtype, 64) + tile_bytes(dtype, columns)) +
                               8 * operand_bytes(dtype));
}

Plan plan_of(const std::string& name, const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  require_within(scalar_limits(), c, s, name);
  const Sequences sequences = sequences_of(c, s, scalar_chunk);
  const ScalarGates gates = scalar_gates(c, op, inputs);

  Plan plan;
  plan.kernel = name;
  plan.modules.push_back(scalar_module("fused_chunk", c, gates));
  plan.outputs = plan_outputs(c, op);
  plan.constants = {sequences.table};
  if (gates.constant) plan.constants.push_back(*gates.constant);

  Launch launch{.module = plan.modules[0].name,
                .function = fmt::format("simple_gla_fused_chunk_{}", key_capacity(s))};
  launch.grid = grid_of(sequences.count * s.H * ((s.V + columns - 1) / columns), name);
  launch.block = {128, 1, 1};
  launch.shared_bytes = shared_bytes(c.dtype);
  launch.arguments = {PointerArgument{"q", 0},
                      PointerArgument{"k", 0},
                      PointerArgument{"v", 0},
                      gates.pointer,
                      input_or_null(inputs, "initial_state"),
                      s.T > 0 ? PointerArgument{"o", 0} : PointerArgument{},
                      PointerArgument{"final_state", 0},
                      PointerArgument{"sequences", 0},
                      static_cast<float>(scale_of(c, op)),
                      static_cast<int32_t>(s.H),
                      static_cast<int32_t>(s.K),
                      static_cast<int32_t>(s.V),
                      static_cast<int32_t>(s.K % 8 == 0 && s.V % 8 == 0)};
  plan.launches.push_back(launch);
  return plan;
}

Kernel fused_chunk_kernel(const char* operator_name) {
  Kernel kernel;
  kernel.name = std::string(operator_name) + ".fused_chunk";
  kernel.operator_name = operator_name;
  kernel.summary = "chunks of 64 tokens on tensor cores in one launch, the state in registers";
  kernel.arithmetic_text = scalar_chunk_arithmetic_text;
  kernel.limits = scalar_limits();
  kernel.resume_granularity = scalar_chunk;
  kernel.exponents_nonpositive = true;
  kernel.plan = [name = kernel.name](const Case& c, const Operator& op, const TensorMap& inputs) {
    return plan_of(name, c, op, inputs);
  };
  kernel.arithmetic = scalar_chunk_arithmetic;
  return kernel;
}

}  // namespace

Kernel simple_gla_fused_chunk() {
  return fused_chunk_kernel("simple_gla");
}
Kernel linear_attn_fused_chunk() {
  return fused_chunk_kernel("linear_attn");
}
Kernel retention_fused_chunk() {
  return fused_chunk_kernel("retention");
}
Kernel lightning_attn_fused_chunk() {
  return fused_chunk_kernel("lightning_attn");
}

}  // namespace assay
