// The plans of the hgrn kernels and the arithmetic they declare.
#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/hgrn/stretch_layout.h"
#include "kernels/kernel.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

using namespace gated;

using hgrn::threads_per_chunk, hgrn::threads_per_sequence;

KernelLimits hgrn_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  limits.max_V = 1 << 20;
  return limits;
}

/// What both plans are made of: D channels, N sequences cut into pieces of `tokens`.
struct Channels {
  Program plan;
  Sizes s;
  Sequences sequences;

  Channels(const std::string& mode, int64_t tokens, const ResolvedCase& c)
      : s(c.sizes), sequences(sequences_of(c, tokens)) {
    plan.name = "hgrn." + mode;
    require_within(hgrn_limits(), c, plan.name);
    plan.outputs = plan_outputs(c);
    plan.modules = {
        kernel_module(fmt::format("hgrn/{}.{}.{}", mode, format(c.dtype).name, format(c.gate_dtype).name))};
  }
  /// Of one number per piece and channel; null where there is no token.
  PointerArgument workspace(const char* name) { return workspace_of(plan, name, sequences.chunks * s.V * 4); }
  /// Of a tensor of tokens; null where there is none.
  PointerArgument tokens(const char* name) const {
    return s.T > 0 ? PointerArgument{name, 0} : PointerArgument{};
  }
  void launch(const char* function, int64_t parts, int64_t threads, std::vector<Argument> arguments) {
    if (parts == 0) return;
    arguments.emplace_back(static_cast<int32_t>(s.V));
    plan.launches.push_back({.module = plan.modules.front().name,
                             .function = function,
                             .grid = grid_of(parts * ((s.V + threads - 1) / threads), plan.name),
                             .block = {static_cast<uint32_t>(threads), 1, 1},
                             .arguments = std::move(arguments)});
  }
};

Program recurrent_plan(const ResolvedCase& c, const TensorMap& inputs) {
  Channels k("fused_recurrent", hgrn::stretch_tokens, c);
  k.plan.constants = {k.sequences.table};
  const PointerArgument initial = input_or_null(inputs, "initial_state"), table{"sequences", 0};
  if (c.forward())
    k.launch(
        "hgrn_fused_recurrent", k.s.N, threads_per_sequence,
        {k.tokens("x"), k.tokens("g"), initial, k.tokens("o"), PointerArgument{"final_state", 0}, table});
  if (c.backward())
    k.launch("hgrn_fused_recurrent_backward", k.s.N, threads_per_sequence,
             {k.tokens("x"), k.tokens("g"), k.tokens("do"), initial, input_or_null(inputs, "dfinal_state"),
              k.tokens("dx"), k.tokens("dg"), output_or_null(k.plan, "dinitial_state"), k.workspace("states"),
              table});
  return k.plan;
}

Program chunk_plan(const ResolvedCase& c, const TensorMap& inputs) {
  Channels k("chunk", hgrn::chunk_tokens, c);
  k.plan.constants = {k.sequences.table, k.sequences.chunk_table};
  if (k.sequences.chunks == 0) k.plan.constants.pop_back();
  const PointerArgument x = k.tokens("x"), g = k.tokens("g"),
                        initial = input_or_null(inputs, "initial_state");
  const PointerArgument sequences{"sequences", 0}, chunks{"chunks", 0};
  const PointerArgument decays = k.workspace("decays"), states = k.workspace("states");
  const int64_t count = k.sequences.chunks;
  if (c.forward()) {
    k.launch("hgrn_chunk_ends", count, threads_per_chunk,
             {x, g, PointerArgument{}, decays, states, PointerArgument{}, chunks});
    k.launch("hgrn_chunk_states", k.s.N, threads_per_sequence,
             {initial, PointerArgument{"final_state", 0}, decays, states, sequences});
    k.launch("hgrn_chunk_outputs", count, threads_per_chunk, {x, g, states, k.tokens("o"), chunks});
  }
  if (c.backward()) {
    const PointerArgument gradients = k.workspace("gradients"), d_o = k.tokens("do");
    k.launch("hgrn_chunk_ends", count, threads_per_chunk, {x, g, d_o, decays, states, gradients, chunks});
    k.launch("hgrn_chunk_states", k.s.N, threads_per_sequence,
             {initial, PointerArgument{}, decays, states, sequences});
    k.launch("hgrn_chunk_state_gradients", k.s.N, threads_per_sequence,
             {input_or_null(inputs, "dfinal_state"), output_or_null(k.plan, "dinitial_state"), decays,
              gradients, sequences});
    k.launch("hgrn_chunk_gradients", count, threads_per_chunk,
             {x, g, d_o, states, gradients, k.tokens("dx"), k.tokens("dg"), chunks});
  }
  return k.plan;
}

/// h = fma(e, h, x): one rounding per token, x as it is. e as in recurrent_plan.cpp. A chunk's decay is the
/// product of its tokens' factors, one rounding per token that the state would have lived through anyway, and
/// meets the state in one fused addition (boundary).
Arithmetic hgrn_state_arithmetic(int64_t tokens) {
  Arithmetic a;
  a.decay = 0x1p-25;
  a.decay_per_nat = 16 * u;
  a.step = u;
  a.underflow = 0x1p-126;
  a.chunk = tokens;
  a.stored = tokens > 0 ? tokens : 1;
  if (tokens > 0) a.boundary = u;
  return a;
}

Arithmetic hgrn_arithmetic(const ResolvedCase& c, int64_t tokens) {
  Arithmetic a = hgrn_state_arithmetic(tokens);
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

/// G = fl(fl(e G) + do): the product rounds once more at every crossing. dg = (e h) G: two products.
AdjointArithmetic hgrn_adjoint_arithmetic(const ResolvedCase& c, int64_t tokens) {
  AdjointArithmetic a;
  a.state = a.adjoint = hgrn_state_arithmetic(tokens);
  a.adjoint.decay = 0x1p-25 + u + 0x1p-49;
  a.state.output_roundoff = unit_roundoff(c.dtype);
  a.gate_readout = gamma(2);
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  return a;
}

Kernel hgrn_kernel(const char* mode, int64_t tokens) {
  Kernel kernel;
  kernel.name = std::string("hgrn.") + mode;
  kernel.operator_name = "hgrn";
  kernel.limits = hgrn_limits();
  kernel.resume_granularity = tokens == 0 ? 1 : tokens;
  kernel.exponents_nonpositive = true;
  kernel.arithmetic = [tokens](const ResolvedCase& c) { return hgrn_arithmetic(c, tokens); };
  kernel.adjoint_arithmetic = [tokens](const ResolvedCase& c) { return hgrn_adjoint_arithmetic(c, tokens); };
  return kernel;
}

}  // namespace

Kernel hgrn_fused_recurrent() {
  Kernel kernel = hgrn_kernel("fused_recurrent", 0);
  kernel.summary = "one token after the other, one thread per channel";
  kernel.arithmetic_text = "fp32 throughout: exponential and fused multiply-add once per token";
  kernel.plan = recurrent_plan;
  return kernel;
}

Kernel hgrn_chunk() {
  Kernel kernel = hgrn_kernel("chunk", hgrn::chunk_tokens);
  kernel.summary = "a scan over chunks of 32 tokens, one thread per chunk and channel";
  kernel.arithmetic_text =
      "fp32 throughout: exponential and fused multiply-add once per token; decays of chunks as products";
  kernel.plan = chunk_plan;
  return kernel;
}

}  // namespace assay
