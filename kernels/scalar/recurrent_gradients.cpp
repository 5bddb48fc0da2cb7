#include "kernels/scalar/recurrent_gradients.h"

#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"

namespace assay::scalar {
using device::Capacity;

void add_recurrent_gradients(ScalarPlan& p) {
  p.use("fused_recurrent_backward");
  const Sizes& s = p.sizes;
  const Capacity keys(s.K), values(s.V);
  const int64_t key_blocks = values.blocks(s.K), rows = s.B * s.T * s.H;
  const bool wants_gates = !p.gates.gradients.buffer.empty();
  const int64_t kept = wants_gates ? p.sequences.chunks * s.H * s.K * values.columns : 0;
  const PointerArgument states = p.workspace("kept_states", kept * 4);
  const PointerArgument products = p.workspace("products", wants_gates ? rows * key_blocks * 4 : 0);
  const PointerArgument sequences{"sequences", 0};
  const auto scan = [&](const char* name, const Capacity& capacity, int64_t blocks,
                        std::vector<Argument> arguments) {
    arguments.insert(arguments.end(), {sequences, p.scale()});
    p.launch(fmt::format("simple_gla_fused_recurrent_{}_{}", name, capacity.columns), s.N * s.H * blocks,
             std::move(arguments));
  };
  scan("queries", values, key_blocks,
       {p.input("k"), p.input("v"), p.gates.pointer, p.input("do"), p.input("initial_state"), p.output("dq"),
        states});
  scan("values", keys, keys.blocks(s.V),
       {p.input("q"), p.input("k"), p.gates.pointer, p.input("do"), p.input("dfinal_state"), p.output("dv")});
  scan("keys", values, key_blocks,
       {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("do"), p.input("dfinal_state"),
        states, p.output("dk"), products, p.output("dinitial_state")});
  if (wants_gates) {
    Launch& gates = p.launch("simple_gla_fused_recurrent_gates", blocks_of(rows, device::block_threads),
                             {p.gates.pointer, products, p.gates.gradients, int64_t{rows}});
    gates.arguments.resize(gates.arguments.size() - 2);  // heads, without K and V
    gates.arguments.push_back(static_cast<int32_t>(key_blocks));
  }
  add_head_gate_gradients(p.plan, p.c, p.gates);
}

/// S as in the forward scan: one rounding of k v, one of fma(e, S, k v). G: one rounding of e G and one of
/// fma(scale q, do, e G), so that a run resumed from its gradient has the same bits; scale q rounds, after
/// the scale itself was rounded to fp32. Sums over columns round once per fused addition of a lane and once
/// per halving of the lanes; dq once more for the scale and once for its rounding; dg also sums over rows,
/// and rounds once for the product with e^g.
AdjointArithmetic scalar_recurrent_adjoint_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const Capacity values(s.V);
  const double over_values = values.roundings(), over_keys = Capacity(s.K).roundings();
  AdjointArithmetic a;
  for (Arithmetic* side : {&a.state, &a.adjoint}) {
    side->decay = 0x1p-25;
    side->decay_per_nat = 16 * u;
    side->write = u;
    side->step = u;
    side->stored = 1;
    side->readout = gamma(over_values);
    side->underflow = 0x1p-126;
    side->output_roundoff = unit_roundoff(c.dtype);
  }
  a.state.readout = gamma(over_values + 2);
  a.adjoint.decay = 0x1p-25 + u + 0x1p-49;
  a.adjoint.write = gamma(2);
  a.value_readout = gamma(over_keys);
  a.gate_readout = gamma(over_values + values.row_roundings(s.K) + 1);
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.total = head_gate_total(c);
  return a;
}

}  // namespace assay::scalar
