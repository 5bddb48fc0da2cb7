// The plans of simple_gla.fused_chunk and of other operators of the family.
#include <fmt/format.h>

#include "kernels/scalar/chunk_plan.h"

namespace assay::scalar {
namespace {

constexpr int64_t columns = 32;  ///< value channels per block

/// Key channels the serving function holds: the smallest that is enough.
int64_t key_capacity(const Sizes& s) {
  return s.K <= 64 ? 64 : s.K <= 128 ? 128 : 256;
}

/// As FusedShared in fused_chunk.cuh.
int64_t shared_bytes(Dtype dtype) {
  const int64_t stages = dtype == Dtype::fp32 ? 1 : 2;
  return stages * (2 * tile_bytes(dtype, 64) + tile_bytes(dtype, columns)) + 8 * operand_bytes(dtype);
}

void add_forward(ScalarPlan& p) {
  p.use("fused_chunk");
  p.tile_launch(
      fmt::format("simple_gla_fused_chunk_{}", key_capacity(p.sizes)),
      p.sequences.count * p.sizes.H * ceil_div(p.sizes.V, columns), shared_bytes(p.c.dtype),
      {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("initial_state"), p.output("o"),
       PointerArgument{"final_state", 0}, PointerArgument{"sequences", 0}, p.scale()});
}

}  // namespace

/// Gradients need the states of all chunks from both ends of time at once: one launch that kept only the last
/// one would make them twice. They are simple_gla.chunk's two launches.
Kernel fused_chunk_kernel(const Member& member) {
  Kernel kernel = scalar_kernel(member, "fused_chunk");
  kernel.summary =
      "chunks of 64 tokens on tensor cores in one launch, the state in registers; gradients by the launches "
      "of "
      "chunk";
  kernel.arithmetic_text = scalar_chunk_arithmetic_text;
  kernel.resume_granularity = scalar_chunk;
  kernel.plan = [member](const Case& c, const Operator& op, const TensorMap& inputs) {
    ScalarPlan p(member, "fused_chunk", scalar_chunk, c, op, inputs);
    if (runs_forward(c)) add_forward(p);
    if (runs_backward(c)) add_chunk_gradients(p);
    return p.plan;
  };
  kernel.arithmetic = scalar_chunk_arithmetic;
  kernel.adjoint_arithmetic = scalar_chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay::scalar
