// The launches of the chunked gradients and the arithmetic they declare.
#include <algorithm>

#include "kernels/device/product_arithmetic.h"
#include "kernels/scalar/chunk_plan.h"

namespace assay::scalar {
namespace {

/// Formats of the copies of S and D (operand.cuh, StateOf).
Dtype copy_dtype(Dtype dtype) {
  return dtype == Dtype::bf16 ? Dtype::bf16 : Dtype::fp32;
}

/// Elements of one chunk's and head's copy: a whole number of 16 x 16 blocks.
int64_t copy_elements(const Sizes& s) {
  return 256 * ceil_div(s.K, 16) * ceil_div(s.V, 16);
}

/// As GradientTiles in chunk_gradients.cuh.
int64_t gradient_shared_bytes(Dtype dtype) {
  const int64_t state_places = dtype == Dtype::fp32 ? 1 : 2;
  return 4 * tile_bytes(dtype, 64) + state_places * tile_bytes(copy_dtype(dtype), 64);
}

}  // namespace

void add_chunk_gradients(ScalarPlan& p) {
  p.use("chunk_backward");
  const Sizes& s = p.sizes;
  const int64_t blocks = p.sequences.chunks * s.H;
  const int64_t bytes = blocks * copy_elements(s) * static_cast<int64_t>(format(copy_dtype(p.c.dtype)).bytes);
  const PointerArgument states = p.workspace("start_states", bytes),
                        adjoints = p.workspace("end_adjoints", bytes);
  p.tile_launch("simple_gla_chunk_scans", scan_blocks(s), scan_shared_bytes(p.c.dtype),
                {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("do"),
                 p.input("initial_state"), p.input("dfinal_state"), p.output("dinitial_state"), states,
                 adjoints, PointerArgument{"sequences", 0}, p.scale()})
      .grid[1] = 2;
  if (blocks > 0)
    p.tile_launch("simple_gla_chunk_gradients", blocks, gradient_shared_bytes(p.c.dtype),
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
AdjointArithmetic scalar_chunk_adjoint_arithmetic(const Case& c) {
  const Sizes s = sizes_of(c);
  const auto K = static_cast<double>(s.K);
  const double keys = contraction(c.dtype, K), values = contraction(c.dtype, static_cast<double>(s.V)),
               tokens = contraction(c.dtype, scalar_chunk), product = operand_error(c.dtype, 1);
  const bool split = c.dtype == Dtype::fp32;
  AdjointArithmetic a;
  a.state = a.adjoint = scalar_chunk_arithmetic(c);
  a.adjoint.write = compounded({split ? product : 0, gamma(3), tokens});
  a.state.readout = a.adjoint.readout = compounded({product, values, tokens, gamma(2)});
  a.value_readout = compounded({product, keys, tokens, gamma(2)});
  a.value_readout_decayed = a.state.readout_decayed;
  a.gate_readout =
      std::max({compounded({keys, values, gamma(3 + 7 + 64 + 2)}),
                compounded({product, values, gamma(2 + K / 4 + 2 + 64 + 3)}),
                compounded({product, product, gamma(static_cast<double>(copy_elements(s)) / 128 + 10)})});
  a.gate_readout_decayed = compounded({ex2_error, gamma(1)});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.total = head_gate_total(c);
  return a;
}

}  // namespace assay::scalar
