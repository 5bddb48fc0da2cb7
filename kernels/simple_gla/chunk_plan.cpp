// The plans of simple_gla.chunk and of the operators it serves, and the arithmetic they declare.
#include "kernels/simple_gla/chunk_plan.h"

#include <fmt/format.h>

#include "kernels/gated/launch_tables.h"
#include "kernels/gated/product_arithmetic.h"
#include "kernels/simple_gla/gates.h"

namespace assay {
namespace gated {

int64_t tile_bytes(Dtype dtype, int64_t columns) {
  return 64 * (columns * static_cast<int64_t>(format(dtype).bytes) + 16) + 4 * 32;
}

int64_t operand_bytes(Dtype dtype) {
  return dtype == Dtype::bf16 ? 512 : 1024;
}

const char* const scalar_chunk_arithmetic_text =
    "bf16: bf16 operands; fp16: tf32 operands; fp32: 3xTF32 operands (high + low, three products); fp32 "
    "accumulators; decayed k, weighed scores and the state's copy are rounded to the operand format; state "
    "fp32";

/// Every path from k_j v_j to o_i, each factor counted with its largest number of roundings:
///   inside a chunk    q k on tensor cores, times 2^x (1 ex2, 1 product), rounded to the operand format,
///   times
///                     v on tensor cores
///   between chunks    k e^{L-G} (1 ex2, 1 product, rounded) into dS; the state's copy, rounded, times q on
///                     tensor cores; the sum times e^{G} (1 ex2, 1 product)
/// `write` takes what a term k v pays when it enters the state, `readout` the rest; the product of both
/// covers the longest path, so that it covers every path.
///
/// The decays. A gate in log2 units has 1.23 u (g log2 e, rounded, with the rounded constant; of a head's
/// constant 1 u). A pair's argument is a sum of at most 6 additions, one to a chunk's end or over a whole
/// chunk too: 7.3 u per nat. A chunk's decay of the state, over L nats, is 1 + p with p = 2^y - 1 within 4 u
/// of itself while y > -1/2, and the addition factor S + dS rounds by u (|p| S + dS), of which u dS is in
/// `write`: together 5 u (e^L - 1) <= 5.98 u L of e^-L, as L <= 0.3466. Else it is ex2, 4 u <= 11.6 u L. So
/// `crossing` is 4 u, and at most 11.6 u per nat. The outer addition is `boundary`.
GatedArithmetic scalar_chunk_arithmetic(const Case& c) {
  const Sizes s = sizes_of(c);
  const double keys = contraction(c.dtype, static_cast<double>(s.K)), tokens = contraction(c.dtype, 64);
  const bool split = c.dtype == Dtype::fp32;
  const double product = operand_error(c.dtype, 1);
  GatedArithmetic a;
  a.chunk = scalar_chunk;
  a.boundary = 1.01 * u;
  a.decay_per_nat = 7.3 * u;
  a.crossing = 4 * u;
  a.crossing_per_nat = 11.6 * u;
  // gamma(1): the addition factor S + dS.
  a.write = compounded({split ? product : 0, gamma(1), tokens});
  a.write_decayed = compounded({split ? 0 : product, ex2_error, gamma(1)});
  // gamma(2): the scale, and its own rounding to fp32.
  a.readout = compounded({product, keys, tokens, gamma(2)});
  a.readout_decayed = compounded({ex2_error, gamma(1)});
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace gated

namespace {

using namespace gated;

constexpr int64_t state_columns = 32;  ///< value channels per block of the state scan

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

uint32_t state_shared_bytes(Dtype dtype) {
  const int64_t stage = tile_bytes(dtype, 64) + tile_bytes(dtype, state_columns);
  return static_cast<uint32_t>(stage * (4 * stage <= 75776 ? 4 : 2));
}
uint32_t output_shared_bytes(Dtype dtype) {
  return static_cast<uint32_t>(3 * tile_bytes(dtype, 64) + 16 * operand_bytes(dtype));
}

Plan chunk_plan(const std::string& name, const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  require_within(scalar_limits(), c, s, name);
  const Sequences sequences = sequences_of(c, s, scalar_chunk);
  const ScalarGates gates = scalar_gates(c, op, inputs);

  Plan plan;
  plan.kernel = name;
  plan.modules.push_back(scalar_module("chunk", c, gates));
  plan.outputs = plan_outputs(c, op);
  plan.constants = {sequences.table};
  if (gates.constant) plan.constants.push_back(*gates.constant);
  if (sequences.chunks > 0) {
    plan.constants.push_back(sequences.chunk_table);
    plan.workspaces.push_back(
        {"states", sequences.chunks * s.H * ceil_div(s.V, 16) * ceil_div(s.K, 16) * operand_bytes(c.dtype)});
  }
  const PointerArgument states = sequences.chunks > 0 ? PointerArgument{"states", 0} : PointerArgument{};
  const auto heads = static_cast<int32_t>(s.H), K = static_cast<int32_t>(s.K), V = static_cast<int32_t>(s.V);
  const int32_t vector = s.K % 8 == 0 && s.V % 8 == 0;

  Launch state{.module = plan.modules[0].name, .function = "simple_gla_chunk_state"};
  state.grid = grid_of(sequences.count * s.H * ceil_div(s.K, 64) * ceil_div(s.V, state_columns), name);
  state.block = {128, 1, 1};
  state.shared_bytes = state_shared_bytes(c.dtype);
  state.arguments = {PointerArgument{"k", 0},
                     PointerArgument{"v", 0},
                     gates.pointer,
                     input_or_null(inputs, "initial_state"),
                     PointerArgument{"final_state", 0},
                     states,
                     PointerArgument{"sequences", 0},
                     heads,
                     K,
                     V,
                     vector};
  plan.launches.push_back(state);
  if (sequences.chunks == 0) return plan;

  Launch output{.module = plan.modules[0].name, .function = "simple_gla_chunk_output"};
  output.grid = grid_of(sequences.chunks * s.H, name);
  output.block = {128, 1, 1};
  output.shared_bytes = output_shared_bytes(c.dtype);
  output.arguments = {PointerArgument{"q", 0},
                      PointerArgument{"k", 0},
                      PointerArgument{"v", 0},
                      gates.pointer,
                      states,
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

Kernel chunk_kernel(const char* operator_name) {
  Kernel kernel;
  kernel.name = std::string(operator_name) + ".chunk";
  kernel.operator_name = operator_name;
  kernel.summary = "chunks of 64 tokens on tensor cores: state scan, then outputs";
  kernel.arithmetic_text = scalar_chunk_arithmetic_text;
  kernel.limits = scalar_limits();
  kernel.resume_granularity = scalar_chunk;
  kernel.exponents_nonpositive = true;
  kernel.plan = [name = kernel.name](const Case& c, const Operator& op, const TensorMap& inputs) {
    return chunk_plan(name, c, op, inputs);
  };
  kernel.arithmetic = scalar_chunk_arithmetic;
  return kernel;
}

}  // namespace

Kernel simple_gla_chunk() {
  return chunk_kernel("simple_gla");
}
Kernel linear_attn_chunk() {
  return chunk_kernel("linear_attn");
}
Kernel retention_chunk() {
  return chunk_kernel("retention");
}
Kernel lightning_attn_chunk() {
  return chunk_kernel("lightning_attn");
}

}  // namespace assay
