// The plans of simple_gla.chunk and of other operators of the family, and the arithmetic they declare.
#include "kernels/scalar/chunk_plan.h"

#include "kernels/device/product_arithmetic.h"

namespace assay::scalar {

const char* const scalar_chunk_arithmetic_text =
    "bf16: bf16 operands; fp16: tf32 operands; fp32: 3xTF32 operands (high + low, three products); fp32 "
    "accumulators; decayed k, weighed scores and the state's copy are rounded to the operand format; state "
    "fp32";

/// Every path from k_j v_j to o_i, each factor counted with its largest number of roundings:
///   inside a chunk    q k on tensor cores, times 2^x (1 ex2, 1 product), rounded to the operand format,
///                     times v on tensor cores
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
Arithmetic scalar_chunk_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const double keys = contraction(c.dtype, static_cast<double>(s.K)),
               tokens = contraction(c.dtype, chunk_tokens);
  const bool split = c.dtype == Dtype::fp32;
  const double product = operand_error(c.dtype, 1);
  Arithmetic a;
  a.chunk = a.stored = chunk_tokens;
  a.boundary = 1.01 * u;
  a.decay_per_nat = 7.3 * u;
  a.crossing = 4 * u;
  a.crossing_per_nat = 11.6 * u;
  // gamma(1): the addition factor S + dS.
  a.write = compounded({split ? product : 0, gamma(1), tokens});
  a.write_decayed = compounded({ex2_error, gamma(1)});
  a.write_scaled = split ? 0 : product;
  // gamma(2): the scale, and its own rounding to fp32.
  a.readout = compounded({product, keys, tokens, gamma(2)});
  a.readout_decayed = compounded({ex2_error, gamma(1)});
  // On the longest path k v is contracted over tokens, q k over keys, and scores v over tokens; of gradients
  // likewise.
  if (split) a.truncated = 3 * split_truncation, a.single = split_single;
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

void add_chunk_forward(ScalarPlan& p) {
  p.use("chunk");
  const FormatSizes format = p.format();
  const int64_t blocks = p.sequences.chunks * p.sizes.H;
  const PointerArgument states =
      p.workspace("states", blocks * (p.state_elements() / 256) * format.operand_block);
  p.tile_launch("simple_gla_chunk_state", p.scan_blocks(), ScanStageLayout(format).shared_bytes(),
                {p.input("k"), p.input("v"), p.gates.pointer, p.input("initial_state"),
                 PointerArgument{"final_state", 0}, states, PointerArgument{"sequences", 0}});
  if (blocks == 0) return;
  p.tile_launch("simple_gla_chunk_output", blocks, ProductLayout(format).bytes,
                {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, states, p.output("o"),
                 PointerArgument{"chunks", 0}, p.scale()});
}

Kernel chunked_kernel(const Member& member, const std::string& mode, const std::string& summary,
                      void (*add_forward)(ScalarPlan&), void (*add_gradients)(ScalarPlan&)) {
  Kernel kernel = scalar_kernel(member, mode);
  kernel.summary = summary;
  kernel.arithmetic_text = scalar_chunk_arithmetic_text;
  kernel.resume_granularity = chunk_tokens;
  kernel.plan = [member, mode, add_forward, add_gradients](const ResolvedCase& c, const TensorMap& inputs) {
    ScalarPlan p(member, mode, chunk_tokens, c, inputs);
    if (c.forward()) add_forward(p);
    if (c.backward()) add_gradients(p);
    return p.plan;
  };
  kernel.arithmetic = scalar_chunk_arithmetic;
  kernel.adjoint_arithmetic = scalar_chunk_adjoint_arithmetic;
  return kernel;
}

Kernel chunk_kernel(const Member& member) {
  return chunked_kernel(member, "chunk", "chunks of 64 tokens on tensor cores: state scan, then outputs",
                        add_chunk_forward);
}

}  // namespace assay::scalar
