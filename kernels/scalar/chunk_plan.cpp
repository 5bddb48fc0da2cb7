// The plans of simple_gla.chunk and of other operators of the family, and the arithmetic they declare.
#include "kernels/scalar/chunk_plan.h"

#include "kernels/device/product_arithmetic.h"

namespace assay::scalar {

int64_t tile_bytes(Dtype dtype, int64_t columns) {
  return 64 * (columns * static_cast<int64_t>(format(dtype).bytes) + 16) + 4 * 32;
}

int64_t operand_bytes(Dtype dtype) {
  return dtype == Dtype::bf16 ? 512 : 1024;
}

int64_t scan_shared_bytes(Dtype dtype) {
  const int64_t stage = tile_bytes(dtype, 64) + tile_bytes(dtype, scan_columns);
  return stage * (4 * stage <= 75776 ? 4 : 2);
}

int64_t scan_blocks(const Sizes& s) {
  return s.N * s.H * ceil_div(s.K, 64) * ceil_div(s.V, scan_columns);
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
Arithmetic scalar_chunk_arithmetic(const Case& c) {
  const Sizes s = sizes_of(c);
  const double keys = contraction(c.dtype, static_cast<double>(s.K)), tokens = contraction(c.dtype, 64);
  const bool split = c.dtype == Dtype::fp32;
  const double product = operand_error(c.dtype, 1);
  Arithmetic a;
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

namespace {

void add_forward(ScalarPlan& p) {
  p.use("chunk");
  const Sizes& s = p.sizes;
  const int64_t blocks = p.sequences.chunks * s.H;
  const PointerArgument states =
      p.workspace("states", blocks * ceil_div(s.V, 16) * ceil_div(s.K, 16) * operand_bytes(p.c.dtype));
  p.tile_launch("simple_gla_chunk_state", scan_blocks(s), scan_shared_bytes(p.c.dtype),
                {p.input("k"), p.input("v"), p.gates.pointer, p.input("initial_state"),
                 PointerArgument{"final_state", 0}, states, PointerArgument{"sequences", 0}});
  if (blocks == 0) return;
  p.tile_launch("simple_gla_chunk_output", blocks,
                3 * tile_bytes(p.c.dtype, 64) + 16 * operand_bytes(p.c.dtype),
                {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, states, p.output("o"),
                 PointerArgument{"chunks", 0}, p.scale()});
}

}  // namespace

Kernel chunk_kernel(const Member& member) {
  Kernel kernel = scalar_kernel(member, "chunk");
  kernel.summary = "chunks of 64 tokens on tensor cores: state scan, then outputs";
  kernel.arithmetic_text = scalar_chunk_arithmetic_text;
  kernel.resume_granularity = scalar_chunk;
  kernel.plan = [member](const Case& c, const Operator& op, const TensorMap& inputs) {
    ScalarPlan p(member, "chunk", scalar_chunk, c, op, inputs);
    if (runs_forward(c)) add_forward(p);
    if (runs_backward(c)) add_chunk_gradients(p);
    return p.plan;
  };
  kernel.arithmetic = scalar_chunk_arithmetic;
  kernel.adjoint_arithmetic = scalar_chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay::scalar
