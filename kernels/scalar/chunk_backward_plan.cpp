// The launches of the chunked gradients and the arithmetic they declare.
#include <algorithm>

#include "kernels/device/product_arithmetic.h"
#include "kernels/scalar/chunk_plan.h"

namespace assay::scalar {

void add_chunk_gradients(ScalarPlan& p) {
  p.use("chunk_backward");
  const FormatSizes format = p.format();
  const int64_t blocks = p.sequences.chunks * p.sizes.H, bytes = blocks * p.state_elements() * format.kept;
  const PointerArgument states = p.workspace("start_states", bytes),
                        adjoints = p.workspace("end_adjoints", bytes);
  p.tile_launch("simple_gla_chunk_scans", p.scan_blocks(), ScanStageLayout(format).shared_bytes(),
                {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("do"),
                 p.input("initial_state"), p.input("dfinal_state"), p.output("dinitial_state"), states,
                 adjoints, PointerArgument{"sequences", 0}, p.scale()})
      .grid[1] = 2;
  if (blocks > 0)
    p.tile_launch("simple_gla_chunk_gradients", blocks, GradientLayout(format).bytes,
                  {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("do"), states, adjoints,
                   p.output("dq"), p.output("dk"), p.output("dv"), p.gates.gradients,
                   PointerArgument{"chunks", 0}, p.scale()});
  add_head_gate_gradients(p.plan, p.c, p.gates);
}

/// Decays, boundaries and what a term pays when it enters S or D are those of the forward state scan
/// (chunk_plan.cpp); in D the scale's own rounding and its product besides. Then per path, each factor
/// counted with its largest number of roundings:
///   dq   across chunks: S's copy rounded, contraction over V, the scale (2), e^G (ex2, 1 product); inside: M
///        contracted over V, times 2^x (ex2, 1 product), the scale (2), rounded to the operand format; both
///        then pass the contraction over tokens
///   dk   the same with D for S and no scale across chunks; dv the same with A, contracted over K
///   dg   the largest of: P inside the chunk, contracted over K and over V, times 2^x (ex2, 1), the scale
///   (2),
///        one product, then at most 7 additions over a token's partners, 64 over tokens, 2 more; q dq and k
///        dk as dq and dk before the tokens' contraction, K/4 fused additions in a lane, 2 over lanes, 64
///        over tokens, 3 more; S (.) D: both copies rounded, K V/128 fused additions, 7 over lanes and warps,
///        e^L (ex2, 1), 3 more
AdjointArithmetic scalar_chunk_adjoint_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const auto K = static_cast<double>(s.K);
  const double keys = contraction(c.dtype, K), values = contraction(c.dtype, static_cast<double>(s.V)),
               tokens = contraction(c.dtype, chunk_tokens), product = operand_error(c.dtype, 1);
  const bool split = c.dtype == Dtype::fp32;
  AdjointArithmetic a;
  a.state = a.adjoint = scalar_chunk_arithmetic(c);
  a.adjoint.write = compounded({split ? product : 0, gamma(3), tokens});
  a.state.readout = a.adjoint.readout = compounded({product, values, tokens, gamma(2)});
  a.value_readout = compounded({product, keys, tokens, gamma(2)});
  a.value_readout_decayed = a.state.readout_decayed;
  a.gate_readout = std::max(
      {compounded({keys, values, gamma(3 + 7 + 64 + 2)}),
       compounded({product, values, gamma(2 + K / 4 + 2 + 64 + 3)}),
       compounded(
           {product, product,
            gamma(static_cast<double>(device::padded_state(s.K, s.V)) / device::block_threads + 10)})});
  a.gate_readout_decayed = compounded({ex2_error, gamma(1)});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.total = head_gate_total(c);
  return a;
}

}  // namespace assay::scalar
