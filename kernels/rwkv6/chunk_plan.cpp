// The plan of rwkv6.chunk: gla.chunk's launches with an exclusive readout.
#include "kernels/channel/case_layout.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/rwkv6/bonus_total.h"

namespace assay {
namespace {

Program rwkv6_chunk_plan(const ResolvedCase& c, const TensorMap& inputs) {
  gated::require_within(gla::channel_limits(), c, "rwkv6.chunk");
  const gated::Sequences sequences = gated::sequences_of(c, channel::chunk_tokens);
  Program plan;
  plan.name = "rwkv6.chunk";
  plan.outputs = gated::plan_outputs(c);
  plan.constants = {sequences.table};
  if (sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  const gla::ChannelChunk kernel{plan.name, "rwkv6", "r", "w", "u"};
  if (c.forward()) gla::add_chunk_forward(plan, kernel, c, inputs, sequences);
  if (c.backward()) {
    gla::add_chunk_backward(plan, kernel, c, inputs, sequences);
    rwkv6::add_bonus_total(plan, plan.modules.back().name, c, sequences.chunks);
  }
  return plan;
}

AdjointArithmetic rwkv6_chunk_adjoint_arithmetic(const ResolvedCase& c) {
  return rwkv6::with_bonus_total(gla::chunk_adjoint_arithmetic(c), c, channel::chunk_tokens);
}

}  // namespace

Kernel rwkv6_chunk() {
  Kernel kernel;
  kernel.name = "rwkv6.chunk";
  kernel.operator_name = "rwkv6";
  kernel.summary =
      "chunks of 64 tokens on tensor cores: state scan, then outputs; decays by recursive halving";
  kernel.arithmetic_text = "as gla.chunk; the bonus r u k of a token itself in fp32";
  kernel.limits = gla::channel_limits();
  kernel.resume_granularity = channel::chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = rwkv6_chunk_plan;
  kernel.arithmetic = gla::chunk_arithmetic;
  kernel.adjoint_arithmetic = rwkv6_chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
