// The plan of gla.fused_chunk: one launch forward; gradients by the launches of gla.chunk, which need the
// states at chunk starts in any order.
#include <fmt/format.h>

#include "kernels/channel/case_layout.h"
#include "kernels/gla/fused_chunk_layout.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

constexpr const char* fused_chunk_name = "gla.fused_chunk";

void add_fused_chunk(Program& plan, const ResolvedCase& c, const TensorMap& inputs, int64_t sequences) {
  const Sizes& s = c.sizes;
  plan.modules.push_back(gla_module("fused_chunk", c.dtype, c.gate_dtype));
  Launch launch{.module = plan.modules.back().name,
                .function = fmt::format("gla_fused_chunk_{}", device::fused_capacity(s.K))};
  launch.grid =
      gated::grid_of(sequences * s.H * channel::blocks_of(s.V, device::fused_columns), fused_chunk_name);
  launch.block = {device::block_threads, 1, 1};
  const channel::CaseLayout layout(c);
  launch.shared_bytes = gla::FusedLayout(layout.element, layout.gate, layout.exchange).bytes;
  launch.arguments = {PointerArgument{"q", 0},
                      PointerArgument{"k", 0},
                      PointerArgument{"v", 0},
                      gated::input_or_null(inputs, "g"),
                      gated::input_or_null(inputs, "initial_state"),
                      s.T > 0 ? PointerArgument{"o", 0} : PointerArgument{},
                      PointerArgument{"final_state", 0},
                      PointerArgument{"sequences", 0},
                      Argument::rounded(c.scale),
                      static_cast<int32_t>(s.H),
                      static_cast<int32_t>(s.K),
                      static_cast<int32_t>(s.V),
                      static_cast<int32_t>(s.K % 8 == 0 && s.V % 8 == 0)};
  plan.launches.push_back(launch);
}

Program gla_fused_chunk_plan(const ResolvedCase& c, const TensorMap& inputs) {
  gated::require_within(gla::channel_limits(), c, fused_chunk_name);
  const gated::Sequences sequences = gated::sequences_of(c, channel::chunk_tokens);
  Program plan;
  plan.name = fused_chunk_name;
  plan.outputs = gated::plan_outputs(c);
  plan.constants = {sequences.table};
  if (c.forward()) add_fused_chunk(plan, c, inputs, sequences.count);
  if (!c.backward()) return plan;
  if (sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  gla::add_chunk_backward(plan, {fused_chunk_name, "gla", "q", "g", ""}, c, inputs, sequences);
  return plan;
}

}  // namespace

Kernel gla_fused_chunk() {
  Kernel kernel;
  kernel.name = fused_chunk_name;
  kernel.operator_name = "gla";
  kernel.summary =
      "chunks of 64 tokens on tensor cores in one launch, the state in registers; gradients by the launches "
      "of "
      "gla.chunk";
  kernel.arithmetic_text = "as gla.chunk, with the same bits";
  kernel.limits = gla::channel_limits();
  kernel.resume_granularity = channel::chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = gla_fused_chunk_plan;
  kernel.arithmetic = gla::chunk_arithmetic;
  kernel.adjoint_arithmetic = gla::chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
