// The launches of gla.fused_recurrent's gradients and the arithmetic they declare.
#include <fmt/format.h>

#include "kernels/gated/launch_tables.h"
#include "kernels/gla/plans.h"
#include "kernels/module_text.h"

namespace assay::gla {
namespace {

/// Columns that the serving function holds, and how they lie, as in recurrent_lanes.cuh.
struct Capacity {
  int64_t columns, per_lane, lanes;

  explicit Capacity(int64_t channels)
      : columns(channels <= 16    ? 16
                : channels <= 64  ? 64
                : channels <= 128 ? 128
                                  : 256),
        per_lane(columns < 64 ? columns / 8 : 8),
        lanes(columns / per_lane) {}
  int64_t blocks(int64_t rows) const { return (rows + 128 / lanes - 1) / (128 / lanes); }
  /// Roundings of a sum over the columns: fused additions in a lane, then one addition per halving.
  double roundings() const {
    double halvings = 0;
    for (int64_t n = lanes; n > 1; n /= 2) ++halvings;
    return static_cast<double>(per_lane) + halvings;
  }
};

}  // namespace

void add_fused_recurrent_backward(Plan& plan, const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  const Capacity keys(s.K), values(s.V);
  plan.modules.push_back(gla_module("fused_recurrent_backward", c.dtype, c.gate_dtype));
  const int64_t kept = gated::sequences_of(c, s, recurrent_chunk).chunks * s.H * s.K * values.columns * 4;
  if (kept > 0) plan.workspaces.push_back({"states", kept});
  const PointerArgument states = kept > 0 ? PointerArgument{"states", 0} : PointerArgument{};
  const auto input = [&](const char* name) { return gated::input_or_null(inputs, name); };
  const auto output = [&](const char* name) { return gated::output_or_null(plan, name); };
  const auto heads = static_cast<int32_t>(s.H), K = static_cast<int32_t>(s.K), V = static_cast<int32_t>(s.V);
  const auto scale = static_cast<float>(scale_of(c, op));
  const PointerArgument sequences{"sequences", 0};

  const auto launch = [&](const char* scan, const Capacity& capacity, int64_t rows,
                          std::vector<Argument> arguments) {
    Launch result{.module = plan.modules.back().name,
                  .function = fmt::format("gla_fused_recurrent_{}_{}", scan, capacity.columns)};
    result.grid = gated::grid_of(s.N * s.H * capacity.blocks(rows), "gla.fused_recurrent");
    result.block = {128, 1, 1};
    result.arguments = std::move(arguments);
    for (const Argument& argument :
         {Argument(sequences), Argument(scale), Argument(heads), Argument(K), Argument(V)})
      result.arguments.push_back(argument);
    plan.launches.push_back(std::move(result));
  };
  launch("queries", values, s.K,
         {input("k"), input("v"), input("g"), input("do"), input("initial_state"), output("dq"), states});
  launch("values", keys, s.V,
         {input("q"), input("k"), input("g"), input("do"), input("dfinal_state"), output("dv")});
  launch("keys", values, s.K,
         {input("q"), input("k"), input("v"), input("g"), input("do"), input("dfinal_state"), states,
          output("dk"), output("dg"), output("dinitial_state")});
}

/// S as in the forward scan: one rounding of k v, one of fma(e, S, k v). G: one rounding of e G and one of
/// fma(scale q, do, e G), so that a run resumed from its gradient has the same bits; scale q rounds, after
/// the scale itself was rounded to fp32. Sums over columns round once per fused addition of a lane and once
/// per halving of the lanes; dq once more for the scale and once for its rounding, dg once for the product
/// with e^g.
GatedAdjointArithmetic fused_recurrent_adjoint_arithmetic(const Case& c) {
  constexpr double u = 0x1p-24;
  const auto gamma = [](double n) { return n * u / (1 - n * u); };
  const Sizes s = sizes_of(c);
  const double over_values = Capacity(s.V).roundings(), over_keys = Capacity(s.K).roundings();
  GatedAdjointArithmetic a;
  for (GatedArithmetic* side : {&a.state, &a.adjoint}) {
    side->decay = 0x1p-25;
    side->decay_per_nat = 16 * u;
    side->write = u;
    side->step = u;
    side->readout = gamma(over_values);
    side->underflow = 0x1p-126;
    side->output_roundoff = unit_roundoff(c.dtype);
  }
  a.state.readout = gamma(over_values + 2);
  a.adjoint.decay = 0x1p-25 + u + 0x1p-49;
  a.adjoint.write = gamma(2);
  a.value_readout = gamma(over_keys);
  a.gate_readout = gamma(over_values + 1);
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  return a;
}

}  // namespace assay::gla
