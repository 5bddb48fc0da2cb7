// The plan of gla.chunk and the arithmetic it declares.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gated/launch_tables.h"
#include "kernels/gated/product_arithmetic.h"
#include "kernels/module_text.h"
#include "src/numerics/bad_input.h"

namespace assay {

using gated::compounded, gated::contraction, gated::ex2_error, gated::gamma, gated::operand_error, gated::u;

namespace {

constexpr int64_t chunk = 64;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Shared memory and operand sizes as in tile.cuh, operand.cuh, chunk_state.cuh and chunk_output.cuh.
struct Layout {
  int64_t element, gate, operand_block;

  explicit Layout(const Case& c)
      : element(format(c.dtype).bytes),
        gate(format(c.gate_dtype).bytes),
        operand_block(c.dtype == Dtype::bf16 ? 512 : 1024) {}
  static int64_t tile(int64_t bytes, int64_t columns) { return 64 * (columns * bytes + 16) + 4 * 32; }
  uint32_t state_bytes(int64_t columns) const {
    const int64_t stage = tile(element, 64) + tile(gate, 64) + tile(element, columns);
    return static_cast<uint32_t>(stage * (3 * stage <= 75776 ? 3 : 2));
  }
  uint32_t output_bytes(const Sizes& s) const {
    const bool early = operand_block == 512;
    const int64_t keys = 4 * ceil_div(s.K, 16) * 1024 + 3 * 64 * 4,
                  stage = 16 * operand_block + tile(element, 64);
    const int64_t stages_begin = keys + (early ? 12 * operand_block : 0);
    const int64_t steps = ceil_div(s.K, 64) * ceil_div(s.V, 64);
    const int64_t stages = early && steps > 1 && stages_begin + 2 * stage <= 101376 ? 2 : 1;
    return static_cast<uint32_t>(std::max(stages_begin + stages * stage, keys + 12 * operand_block));
  }
};

/// Value channels per block. Bits do not depend on them. States: narrow blocks where wide ones leave
/// multiprocessors idle, and for fp32, whose wide stages exceed 99 KiB.
int64_t state_columns(const Case& c, const Sizes& s) {
  if (c.dtype == Dtype::fp32) return 32;
  if (c.dtype == Dtype::fp16) return 64;
  const bool idle = s.V > 32 && s.N * s.H * ceil_div(s.K, 64) * ceil_div(s.V, 64) < 132;
  return idle ? 32 : 64;
}
KernelLimits limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

Plan plan(const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  gated::require_within(limits(), c, s, "gla.chunk");
  const gated::Sequences sequences = gated::sequences_of(c, s, chunk);
  const Layout layout(c);

  Plan plan;
  plan.kernel = "gla.chunk";
  plan.modules.push_back(gla_module("chunk", c.dtype, c.gate_dtype));
  plan.outputs = gated::outputs_of(c, s);
  plan.constants = {sequences.table};
  const int64_t states =
      sequences.chunks * s.H * ceil_div(s.V, 16) * ceil_div(s.K, 16) * layout.operand_block;
  if (sequences.chunks > 0) {
    plan.constants.push_back(sequences.chunk_table);
    plan.workspaces.push_back({"states", states});
  }
  const PointerArgument states_pointer = states > 0 ? PointerArgument{"states", 0} : PointerArgument{};
  const auto heads = static_cast<int32_t>(s.H), K = static_cast<int32_t>(s.K), V = static_cast<int32_t>(s.V);
  const int32_t vector = s.K % 8 == 0 && s.V % 8 == 0;

  const int64_t wide = state_columns(c, s);
  Launch state{.module = plan.modules[0].name, .function = fmt::format("gla_chunk_state_{}", wide)};
  state.grid = gated::grid_of(sequences.count * s.H * ceil_div(s.K, 64) * ceil_div(s.V, wide), "gla.chunk");
  state.block = {128, 1, 1};
  state.shared_bytes = layout.state_bytes(wide);
  state.arguments = {PointerArgument{"k", 0},
                     PointerArgument{"v", 0},
                     gated::input_or_null(inputs, "g"),
                     gated::input_or_null(inputs, "initial_state"),
                     PointerArgument{"final_state", 0},
                     states_pointer,
                     PointerArgument{"sequences", 0},
                     heads,
                     K,
                     V,
                     vector};
  plan.launches.push_back(state);
  if (sequences.chunks == 0) return plan;

  Launch output{.module = plan.modules[0].name, .function = "gla_chunk_output"};
  output.grid = gated::grid_of(sequences.chunks * s.H, "gla.chunk");
  output.block = {128, 1, 1};
  output.shared_bytes = layout.output_bytes(s);
  output.arguments = {PointerArgument{"q", 0},
                      PointerArgument{"k", 0},
                      PointerArgument{"v", 0},
                      gated::input_or_null(inputs, "g"),
                      states_pointer,
                      PointerArgument{"o", 0},
                      PointerArgument{"chunks", 0},
                      static_cast<float>(scale_of(c, op)),
                      heads,
                      K,
                      V,
                      vector};
  plan.launches.push_back(output);
  return plan;
}

/// Every path from k_j v_j to o_i, each factor counted with its largest number of roundings:
///   inside a 16-row tile    q e^{F_s}, k e^{B_s}: 1 ex2 and 1 product each; score rounded to the operand
///   format between tiles           q e^{F_16} times at most 2 tile totals, k e^{B_16}: 4 ex2, 4 products, 3
///   of them rounded between chunks          k e^{L-G} (1 ex2, 1 product) into dS, then q e^{F_16} times at
///   most 3 totals: 4 ex2, 4
///                           products; the state's copy rounded to the operand format
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
GatedArithmetic arithmetic(const Case& c) {
  const Sizes s = sizes_of(c);
  const double keys = contraction(c.dtype, static_cast<double>(s.K)), tokens = contraction(c.dtype, 64);
  GatedArithmetic a;
  a.chunk = chunk;
  a.boundary = 1.01 * u;
  a.decay_per_nat = 9.3 * u;
  a.crossing = 3.4 * u;
  a.crossing_per_nat = 9.9 * u;
  // Scaled operands: k in `write`, q in `readout`. Where nothing decays they are the inputs themselves; the
  // scores' and the state's rounding is left, and fp32 operands are split in any case.
  const bool split = c.dtype == Dtype::fp32;
  const double scaled = split ? 0 : operand_error(c.dtype, 1), product = operand_error(c.dtype, 1);
  a.write = compounded({split ? product : 0, gamma(3), tokens});
  a.write_decayed = compounded({scaled, ex2_error});
  // gamma(2): the scale, and its own rounding to fp32.
  a.readout = compounded({product, gamma(6), keys, tokens, gamma(2)});
  a.readout_decayed = compounded({scaled, ex2_error, ex2_error, ex2_error, ex2_error});
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
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
  kernel.limits = limits();
  kernel.resume_granularity = chunk;
  kernel.exponents_nonpositive = true;
  kernel.plan = plan;
  kernel.arithmetic = arithmetic;
  return kernel;
}

}  // namespace assay
