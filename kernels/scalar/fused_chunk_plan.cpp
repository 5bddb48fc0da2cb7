// The plans of simple_gla.fused_chunk and of other operators of the family.
#include <fmt/format.h>

#include "kernels/scalar/chunk_plan.h"

namespace assay::scalar {
namespace {

void add_fused_chunk_forward(ScalarPlan& p) {
  p.use("fused_chunk");
  p.tile_launch(
      fmt::format("simple_gla_fused_chunk_{}", device::fused_capacity(p.sizes.K)),
      p.sequences.count * p.sizes.H * blocks_of(p.sizes.V, device::fused_columns),
      FusedLayout(p.format()).bytes,
      {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("initial_state"), p.output("o"),
       PointerArgument{"final_state", 0}, PointerArgument{"sequences", 0}, p.scale()});
}

}  // namespace

/// Gradients need the states of all chunks from both ends of time at once: one launch that kept only the last
/// one would make them twice. They are simple_gla.chunk's two launches.
Kernel fused_chunk_kernel(const Member& member) {
  return chunked_kernel(
      member, "fused_chunk",
      "chunks of 64 tokens on tensor cores in one launch, the state in registers; gradients "
      "by the launches of chunk",
      add_fused_chunk_forward);
}

}  // namespace assay::scalar
