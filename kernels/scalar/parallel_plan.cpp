// The plans of simple_gla.parallel and retention.parallel, and the arithmetic they declare.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/device/product_arithmetic.h"
#include "kernels/scalar/chunk_plan.h"

namespace assay::scalar {
namespace {

int64_t blocks_of_tokens(const ResolvedCase& c) {
  return blocks_of(c.sizes.T, chunk_tokens);
}

/// "blocks" [.][2]: sequence, number in it.
Tensor block_table(const Sequences& sequences) {
  Tensor table("blocks", Dtype::i64, {{"block", sequences.chunks}, {"field", 2}});
  const auto row = table.as<int64_t>();
  const auto sequence = sequences.table.as<int64_t>();
  int64_t slot = 0;
  for (int64_t n = 0; n < sequences.count; ++n)
    for (int64_t at = 0; at < blocks_of(sequence[3 * n + 1], chunk_tokens); ++at, ++slot)
      row[2 * slot] = n, row[2 * slot + 1] = at;
  return table;
}

const PointerArgument block_pointer{"blocks", 0}, sequence_pointer{"sequences", 0};

int row_bytes(const ScalarPlan& p) {
  return ParallelLayout(p.format()).bytes;
}
int state_bytes(const ScalarPlan& p) {
  return ScanStageLayout(p.format()).bytes;
}

void add_parallel_forward(ScalarPlan& p) {
  const Sizes& s = p.sizes;
  const int64_t blocks = p.sequences.chunks * s.H;
  if (blocks > 0)
    p.tile_launch("simple_gla_parallel_output", blocks * blocks_of(s.V, step_channels), row_bytes(p),
                  {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("initial_state"),
                   p.output("o"), block_pointer, sequence_pointer, p.scale()});
  p.tile_launch("simple_gla_parallel_state", p.scan_blocks(), state_bytes(p),
                {p.input("k"), p.input("v"), p.gates.pointer, p.input("initial_state"),
                 PointerArgument{"final_state", 0}, sequence_pointer});
}

void add_parallel_backward(ScalarPlan& p) {
  const Sizes& s = p.sizes;
  const int64_t blocks = p.sequences.chunks * s.H, slices = blocks_of(s.K, step_channels),
                rows = s.B * s.T * s.H;
  const auto stride = static_cast<int32_t>(blocks_of_tokens(p.c) + 1);
  const bool wants_gates = !p.gates.gradients.buffer.empty();
  const auto terms = [&](const char* name, int64_t count) {
    return p.workspace(name, wants_gates ? count * 4 : 0);
  };
  const auto partner = [&](const char* name) { return wants_gates ? p.input(name) : PointerArgument{}; };
  const PointerArgument query_rows = terms("query_rows", rows * slices),
                        key_rows = terms("key_rows", rows * slices), key_own = terms("key_own", rows),
                        key_blocks = terms("key_blocks", blocks * slices),
                        query_blocks = terms("query_blocks", blocks * slices * stride);
  if (blocks > 0) {
    p.tile_launch(
        "simple_gla_parallel_queries", blocks * slices, row_bytes(p),
        {p.input("k"), p.input("v"), p.input("do"), partner("q"), p.gates.pointer, p.input("initial_state"),
         p.output("dq"), query_rows, query_blocks, stride, block_pointer, sequence_pointer, p.scale()});
    p.tile_launch(
        "simple_gla_parallel_keys", blocks * slices, row_bytes(p),
        {p.input("q"), p.input("v"), p.input("do"), partner("k"), p.gates.pointer, p.input("dfinal_state"),
         p.output("dk"), key_rows, key_own, key_blocks, block_pointer, sequence_pointer, p.scale()});
    p.tile_launch("simple_gla_parallel_values", blocks * blocks_of(s.V, step_channels), row_bytes(p),
                  {p.input("q"), p.input("k"), p.input("do"), p.gates.pointer, p.input("dfinal_state"),
                   p.output("dv"), block_pointer, sequence_pointer, p.scale()});
  }
  if (!p.output("dinitial_state").buffer.empty())
    p.tile_launch("simple_gla_parallel_adjoint", p.scan_blocks(), state_bytes(p),
                  {p.input("q"), p.input("do"), p.gates.pointer, p.input("dfinal_state"),
                   p.output("dinitial_state"), sequence_pointer, p.scale()});
  if (wants_gates)
    p.launch("simple_gla_parallel_gates", blocks,
             {p.gates.pointer, p.input("initial_state"), p.input("dfinal_state"), query_rows, query_blocks,
              stride, key_rows, key_own, key_blocks, p.gates.gradients, block_pointer, sequence_pointer});
  add_head_gate_gradients(p.plan, p.c, p.gates);
}

/// Every path from k_j v_j to o_i, each factor counted with its largest number of roundings:
///   pairs    q k on tensor cores, times 2^x (1 ex2, 1 product), the scale (2), rounded to the operand
///            format, times v on tensor cores over the 64 tokens of a block; then one addition per block
///   S_0      rounded, times q on tensor cores, times the scale and e^{G} (ex2, 1), one addition
///   S_T      k e^{G_T - G_j} (ex2, 1 product, rounded), times v over 64 tokens, one addition per block and
///            two of the old state, whose decay is made as a chunk's is (chunk_plan.cpp): the whole sequence
///            is one chunk
/// `write` takes what a term pays on its way into S_T, `readout` the rest, so that their product covers every
/// path.
///
/// The decays. A gate in log2 units has 1.23 u; a block's own sum has at most 6 additions, the sums of the
/// blocks between one more each, and two join the three parts: 9.3 u per nat and one u per block.
Arithmetic parallel_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const auto blocks = static_cast<double>(blocks_of_tokens(c));
  const double keys = contraction(c.dtype, static_cast<double>(s.K)),
               tokens = contraction(c.dtype, chunk_tokens), product = operand_error(c.dtype, 1);
  const bool split = c.dtype == Dtype::fp32;
  Arithmetic a = scalar_chunk_arithmetic(c);
  a.chunk = std::max<int64_t>(s.T, 1), a.stored = 0;
  a.truncated = a.single = 0;  // of the sums over blocks nothing is said
  a.decay_per_nat = 1.01 * (9.3 + blocks) * u;
  a.write = compounded({split ? product : 0, tokens, gamma(blocks + 1)});
  a.readout = compounded({product, keys, tokens, gamma(2 + blocks + 1)});
  return a;
}

/// dq, dk and dv are made as o is, contracted over V, V and K before the exponential, over the block's tokens
/// after it. dg is a sum of three kinds of terms: P_ij inside a block as in chunk_backward_plan.cpp; q dq and
/// k dk of a row, 16 fused additions and 2 over lanes for each of K/64 slices, 64 over tokens; those of whole
/// blocks, 16 fused additions and 7 over lanes and warps, then a share of (blocks)^2 / 4 of them per thread
/// and 7 over threads. S_0 (.) dS_T takes K V / 128 fused additions and 7.
AdjointArithmetic parallel_adjoint_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const auto blocks = static_cast<double>(blocks_of_tokens(c)), K = static_cast<double>(s.K),
             V = static_cast<double>(s.V), slices = std::ceil(K / step_channels);
  const double keys = contraction(c.dtype, K), values = contraction(c.dtype, V),
               tokens = contraction(c.dtype, chunk_tokens), product = operand_error(c.dtype, 1);
  const bool split = c.dtype == Dtype::fp32;
  AdjointArithmetic a;
  a.state = a.adjoint = parallel_arithmetic(c);
  a.adjoint.write = compounded({split ? product : 0, tokens, gamma(blocks + 3)});
  a.state.readout = a.adjoint.readout = compounded({product, values, tokens, gamma(2 + blocks + 1)});
  a.value_readout = compounded({product, keys, tokens, gamma(2 + blocks + 1)});
  a.value_readout_decayed = a.state.readout_decayed;
  const double across = std::ceil(slices * (blocks + 1) * (blocks + 1) / 4 / device::block_threads) +
                        std::ceil(slices * blocks / device::block_threads);
  const double roundings = std::max({3.0 + 7 + 64, 2 + blocks + 18 + slices + 66, 2 + 16 + 7 + across + 7,
                                     std::ceil(K * V / device::block_threads) + 8}) +
                           4;
  a.gate_readout = compounded({product, keys, values, tokens, gamma(roundings)});
  a.gate_readout_decayed = a.state.readout_decayed;
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.total = head_gate_total(c);
  return a;
}

}  // namespace

Kernel parallel_kernel(const Member& member) {
  Kernel kernel = scalar_kernel(member, "parallel");
  kernel.summary = "all pairs of tokens, 64 x 64 at a time on tensor cores, without states between";
  kernel.arithmetic_text =
      "bf16: bf16 operands; fp16: tf32 operands; fp32: 3xTF32 operands (high + low, three products); fp32 "
      "accumulators, one addition per 64 tokens; weighed scores and S_0 are rounded to the operand format";
  kernel.resume_granularity = std::numeric_limits<int64_t>::max();  // a split run is summed in other blocks
  kernel.plan = [member](const ResolvedCase& c, const TensorMap& inputs) {
    ScalarPlan p(member, "parallel", chunk_tokens, c, inputs);
    if (p.sequences.chunks > 0) p.plan.constants.push_back(block_table(p.sequences));
    p.use("parallel");
    if (c.forward()) add_parallel_forward(p);
    if (c.backward()) add_parallel_backward(p);
    return p.plan;
  };
  kernel.arithmetic = parallel_arithmetic;
  kernel.adjoint_arithmetic = parallel_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay::scalar
