// The plan of gla.chunk and the arithmetic it declares.
#include <fmt/format.h>

#include "kernels/channel/case_layout.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay {

namespace gla {

KernelLimits channel_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

void add_chunk_forward(Program& plan, const ChannelChunk& kernel, const ResolvedCase& c,
                       const TensorMap& inputs, const gated::Sequences& sequences) {
  const Sizes& s = c.sizes;
  const channel::CaseLayout layout(c);
  plan.modules.push_back(kernel_module(
      fmt::format("{}/chunk.{}.{}", kernel.folder, format(c.dtype).name, format(c.gate_dtype).name)));
  const std::string& module = plan.modules.back().name;
  const PointerArgument states_pointer =
      gated::workspace_of(plan, "states", sequences.chunks * s.H * layout.operand_bytes());
  const auto heads = static_cast<int32_t>(s.H), K = static_cast<int32_t>(s.K), V = static_cast<int32_t>(s.V);
  const int32_t vector = s.K % 8 == 0 && s.V % 8 == 0;

  const int wide = channel::scan_columns(c, layout);
  Launch state{.module = module, .function = fmt::format("{}_chunk_state_{}", kernel.folder, wide)};
  state.grid = gated::grid_of(layout.scan_blocks(wide), kernel.name);
  state.block = {device::block_threads, 1, 1};
  state.shared_bytes = layout.state_shared(wide);
  state.arguments = {PointerArgument{"k", 0},
                     PointerArgument{"v", 0},
                     gated::input_or_null(inputs, kernel.gate),
                     gated::input_or_null(inputs, "initial_state"),
                     PointerArgument{"final_state", 0},
                     states_pointer,
                     PointerArgument{"sequences", 0},
                     heads,
                     K,
                     V,
                     vector};
  plan.launches.push_back(state);
  if (sequences.chunks == 0) return;

  Launch output{.module = module, .function = kernel.folder + "_chunk_output" + channel::output_suffix(c)};
  output.grid = gated::grid_of(sequences.chunks * s.H, kernel.name);
  output.block = {device::block_threads, 1, 1};
  output.shared_bytes = layout.output_shared();
  std::vector<Argument> bonus;
  if (!kernel.bonus.empty()) bonus = {PointerArgument{kernel.bonus, 0}};
  output.arguments = joined({{PointerArgument{kernel.query, 0}, PointerArgument{"k", 0},
                              PointerArgument{"v", 0}, gated::input_or_null(inputs, kernel.gate)},
                             bonus,
                             {states_pointer, PointerArgument{"o", 0}, PointerArgument{"chunks", 0},
                              Argument::rounded(c.scale), heads, K, V, vector}});
  plan.launches.push_back(output);
}

/// Every path from k_j v_j to o_i, each factor counted with its largest number of roundings:
///   inside a 16-row tile  q e^{F_s}, k e^{B_s}: 1 ex2 and 1 product each; score rounded to the operand
///                         format
///   between tiles         q e^{F_16} times at most 2 tile totals, k e^{B_16}: 4 ex2, 4 products, 3 of them
///                         rounded
///   between chunks        k e^{L-G} (1 ex2, 1 product) into dS, then q e^{F_16} times at most 3 totals: 4
///                         ex2, 4 products; the state's copy rounded to the operand format
/// `write` takes what a term k v pays when it enters the state (or, inside a chunk, on k's side), `readout`
/// the rest; the product of both covers the longest path, so that it covers every path. On the diagonal q_i
/// k_i is a chain of at most K / 4 + 2 fused additions: fewer than the ex2 and operand errors it is spared.
///
/// The decays themselves. Arguments are sums of g log2(e): 0.23 u for the constant, u for the product, one
/// for each addition, at most 8 (k^ to the chunk's end; 6 for a chunk's total, 4 inside and between
/// tiles): 9.3 u per nat. A chunk's decay of the state, over L nats, is 1 + p with p = 2^y - 1 within 4 u of
/// itself while y > -1/2, and the addition factor S + dS rounds by u (|p| S + dS), of which u dS is in
/// `write`: together 5 u (e^L - 1) <= 5.98 u L of e^-L, as L <= 0.3466; with 7.3 u L for the argument that
/// leaves 4 u L beyond decay_per_nat. Else it is ex2, 4 u + 7.3 u L, which leaves 4 u - 2 u L <= 3.4 u. So
/// `crossing` is 3.4 u, and at most 9.9 u per nat (3.4 u at 0.3435 nats). The outer addition is `boundary`.
Arithmetic chunk_arithmetic(const ResolvedCase& c) {
  using namespace gated;
  const Sizes& s = c.sizes;
  const double keys = contraction(c.dtype, static_cast<double>(s.K)),
               tokens = contraction(c.dtype, channel::chunk_tokens);
  Arithmetic a;
  a.chunk = a.stored = channel::chunk_tokens;
  a.boundary = 1.01 * u;
  a.decay_per_nat = 9.3 * u;
  a.crossing = 3.4 * u;
  a.crossing_per_nat = 9.9 * u;
  // Scaled operands: each is an input times at most 4 weights in fp32, rounded once to its nearest. Where
  // nothing decays they are the inputs themselves; the scores' and the state's rounding is left, and fp32
  // operands are split in any case.
  const bool split = c.dtype == Dtype::fp32;
  const double scaled = split ? 0 : operand_error(c.dtype, 1), product = operand_error(c.dtype, 1);
  a.write = compounded({split ? product : 0, gamma(3), tokens});
  a.write_decayed = compounded({ex2_error, gamma(1)});
  // gamma(2): the scale, and its own rounding to fp32.
  a.readout = compounded({product, gamma(6), keys, tokens, gamma(2)});
  a.readout_decayed = compounded({ex2_error, ex2_error, ex2_error, ex2_error, gamma(4)});
  a.write_scaled = a.readout_scaled = scaled;
  // On the longest path k v is contracted over tokens, q k over keys, and scores v over tokens.
  if (split) a.truncated = 3 * split_truncation, a.single = split_single;
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  a.bonus = bonus_error(s);
  return a;
}

/// q u, at most K / 4 fused additions in a lane, 2 over lanes; what the score meets next is in the readout.
double bonus_error(const Sizes& s) {
  return gated::gamma(static_cast<double>(s.K) / 4 + 4);
}

}  // namespace gla

namespace {

Program gla_chunk_plan(const ResolvedCase& c, const TensorMap& inputs) {
  gated::require_within(gla::channel_limits(), c, "gla.chunk");
  const gated::Sequences sequences = gated::sequences_of(c, channel::chunk_tokens);
  Program plan;
  plan.name = "gla.chunk";
  plan.outputs = gated::plan_outputs(c);
  plan.constants = {sequences.table};
  if (sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  if (c.forward()) gla::add_chunk_forward(plan, {"gla.chunk", "gla", "q", "g", ""}, c, inputs, sequences);
  if (c.backward()) gla::add_chunk_backward(plan, {"gla.chunk", "gla", "q", "g", ""}, c, inputs, sequences);
  return plan;
}

}  // namespace

Kernel gla_chunk() {
  Kernel kernel;
  kernel.name = "gla.chunk";
  kernel.operator_name = "gla";
  kernel.summary =
      "chunks of 64 tokens on tensor cores: state scan, then outputs; decays by recursive halving";
  kernel.arithmetic_text =
      "bf16: bf16 operands; fp16: tf32 operands; fp32: 3xTF32 operands (high + low, three products); fp32 "
      "accumulators; "
      "scaled q, scaled k, scores and the state's copy are rounded to the operand format; state fp32";
  kernel.limits = gla::channel_limits();
  kernel.resume_granularity = channel::chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = gla_chunk_plan;
  kernel.arithmetic = gla::chunk_arithmetic;
  kernel.adjoint_arithmetic = gla::chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
