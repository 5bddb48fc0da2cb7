// The launches of gla.fused_recurrent's gradients and the arithmetic they declare.
#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"

namespace assay::gla {
void add_recurrent_backward(Program& plan, const RecurrentBackward& kernel, const ResolvedCase& c,
                            const TensorMap& inputs) {
  const Sizes& s = c.sizes;
  const device::Capacity keys(s.K), values(s.V);
  plan.modules.push_back(kernel.module);
  const int64_t chunks = gated::sequences_of(c, device::kept_tokens).chunks;
  const auto input = [&](const std::string& name) { return gated::input_or_null(inputs, name); };
  const auto gradient = [&](const std::string& name) { return gated::output_or_null(plan, "d" + name); };
  const auto heads = static_cast<int32_t>(s.H), K = static_cast<int32_t>(s.K), V = static_cast<int32_t>(s.V);
  const auto scale = Argument::rounded(c.scale);
  const PointerArgument sequences{"sequences", 0}, q = input(kernel.query), k = input("k"), v = input("v"),
                                                   g = input(kernel.gate), d_o = input("do");
  const auto kept = [&](const char* name) {
    return gated::workspace_of(plan, name, chunks * s.H * s.K * values.columns * 4);
  };
  const PointerArgument states = kept("states"), adjoints = kept("adjoints");
  std::vector<Argument> bonus, bonus_sums;
  if (!kernel.bonus.empty()) {
    bonus = {input(kernel.bonus)};
    bonus_sums = {gated::workspace_of(plan, "bonus_sums", chunks * s.H * s.K * 4)};
  }

  // Side by side where one function serves both.
  const int64_t query_blocks = s.N * s.H * values.scan_blocks(s.K),
                value_blocks = s.N * s.H * keys.scan_blocks(s.V);
  const auto scan = [&](const device::Capacity& capacity, int64_t of_queries, int64_t of_values) {
    Launch& launch = gated::add_launch(
        plan, kernel.module.name, fmt::format("{}scans_{}", kernel.function, capacity.columns),
        of_queries + of_values,
        joined({{q, k, v, g},
                bonus,
                {d_o, input("initial_state"), input("dfinal_state"), gradient(kernel.query), states,
                 gradient("v"), adjoints, gradient("initial_state"), sequences, scale, heads, K, V,
                 static_cast<int32_t>(values.columns), static_cast<int32_t>(of_queries)}}));
    launch.block[0] = device::attended_threads;
  };
  if (values.columns == keys.columns) {
    scan(values, query_blocks, value_blocks);
  } else {
    scan(values, query_blocks, 0);
    scan(keys, 0, value_blocks);
  }
  if (chunks == 0) return;
  gated::add_launch(plan, kernel.module.name, fmt::format("{}keys_{}", kernel.function, values.columns),
                    chunks * s.H * values.blocks(s.K),
                    joined({{q, k, v, g},
                            bonus,
                            {d_o, states, adjoints, gradient("k"), gradient(kernel.gate)},
                            bonus_sums,
                            {PointerArgument{"chunks", 0}, scale, heads, K, V}}));
}

/// S as in the forward scan: one rounding of k v, one of fma(e, S, k v). G: one rounding of e G and one of
/// fma(scale q, do, e G), so that a run resumed from its gradient has the same bits; scale q rounds, after
/// the scale itself was rounded to fp32. Sums over columns round once per fused addition of a lane and once
/// per halving of the lanes; dq once more for the scale and once for its rounding, dg once for the product
/// with e^g.
///
/// Exclusive: G = fma(e, G, (scale q) do), a term with three roundings. u meets what is written in one fused
/// addition more of each readout: dq, dv in every element of the sum, fma(u, written, S or G); dk behind the
/// sum, fma(u, c_t, ..) with c_t = sum_v v (scale q do). So a term with u passes at most the three roundings
/// of what is written beyond the readout. du = sum_t k_t c_t: the sum in c_t, at most 8 fused additions in a
/// lane, 3 halvings: `total` as far as a chunk goes.
AdjointArithmetic recurrent_adjoint_arithmetic(const ResolvedCase& c, bool exclusive) {
  using gated::gamma, gated::u;
  const Sizes& s = c.sizes;
  const double over_values = device::Capacity(s.V).roundings(), over_keys = device::Capacity(s.K).roundings(),
               own = exclusive ? 1 : 0;
  AdjointArithmetic a;
  for (Arithmetic* side : {&a.state, &a.adjoint}) {
    side->decay = 0x1p-25;
    side->decay_per_nat = 16 * u;
    side->write = u;
    side->step = u;
    side->stored = 1;
    side->readout = gamma(over_values + own);
    side->underflow = 0x1p-126;
    side->output_roundoff = unit_roundoff(c.dtype);
  }
  a.state.readout = gamma(over_values + own + 2);
  if (!exclusive) a.adjoint.decay = 0x1p-25 + u + 0x1p-49;
  a.adjoint.write = gamma(exclusive ? 3 : 2);
  a.value_readout = gamma(over_keys + own);
  a.gate_readout = gamma(over_values + 1);
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  if (exclusive) {
    a.bonus = gamma(3);
    a.total = gamma(over_values + 8 + 3);
  }
  return a;
}

}  // namespace assay::gla
