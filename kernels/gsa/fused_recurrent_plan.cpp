// The plan of gsa.fused_recurrent and the arithmetic it declares.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"
#include "kernels/device/recurrent_plan.h"
#include "kernels/gla/plans.h"
#include "kernels/gsa/slot_launches.h"
#include "kernels/launch_tables.h"

namespace assay {
namespace {

using device::Capacity;
using gsa::SlotLaunches;
using gsa::SlotPass;

/// The launches of one pass, each a scan over the tokens.
class RecurrentPass {
 public:
  RecurrentPass(SlotLaunches& to, SlotPass pass)
      : to_(to), pass_(std::move(pass)), over_channels_(pass_.channels), over_slots_(to.sizes().M) {}

  /// x = scale S d, the final state where asked for, and states kept for the gradients.
  void readout(const PointerArgument& x, const PointerArgument& final_state, bool keep) {
    scan(false, "gsa_readout", over_channels_, over_channels_.scan_blocks(to_.sizes().M),
         {to_.input("s"), to_.input(pass_.written), to_.input("g"), to_.input(pass_.cotangent), pass_.initial,
          x, keep ? kept("_kept") : PointerArgument{}, final_state});
  }
  /// o = scale S^T w.
  void outputs(const PointerArgument& o, const PointerArgument& final_state) {
    scan(false, "gsa_fused_recurrent", over_slots_, device::blocks_of(pass_.channels, device::scan_columns),
         {to_.slots(pass_.weights), to_.input("s"), to_.input(pass_.written), to_.input("g"), pass_.initial,
          o, final_state});
  }
  /// Gradients of c, and of s, g and the initial state.
  void gradients(const PointerArgument& written, const PointerArgument& dinitial_state) {
    const PointerArgument adjoints = kept("_adjoints");
    scan(true, "gsa_values", over_slots_, over_slots_.scan_blocks(pass_.channels),
         {to_.slots(pass_.weights), to_.input("s"), to_.input("g"), to_.input(pass_.cotangent), pass_.dfinal,
          written, adjoints, dinitial_state},
         {static_cast<int32_t>(over_channels_.columns)});
    add(true, "gsa_keys", over_channels_, to_.chunks() * over_channels_.blocks(to_.sizes().M),
        {to_.slots(pass_.weights), to_.input("s"), to_.input(pass_.written), to_.input("g"),
         to_.input(pass_.cotangent), kept("_kept"), adjoints, to_.slots(pass_.name + "_ds"),
         to_.slots(pass_.name + "_dg"), PointerArgument{"chunks", 0}});
  }

 private:
  /// A state for every chunk.
  PointerArgument kept(const char* name) {
    return to_.workspace(pass_.name + name, to_.chunks() * to_.sizes().M * over_channels_.columns * 4);
  }
  /// A function that serves `capacity` columns, `blocks` blocks per sequence and head.
  void scan(bool backward, const char* function, const Capacity& capacity, int64_t blocks,
            std::vector<Argument> arguments, const std::vector<Argument>& last = {}) {
    arguments.push_back(PointerArgument{"sequences", 0});
    add(backward, function, capacity, to_.sizes().N * to_.sizes().H * blocks, std::move(arguments), last,
        device::attended_threads);
  }
  void add(bool backward, const char* function, const Capacity& capacity, int64_t blocks,
           std::vector<Argument> arguments, const std::vector<Argument>& last = {},
           uint32_t threads = device::scan_threads) {
    const Sizes& s = to_.sizes();
    arguments.push_back(pass_.scale);
    for (const int64_t size : {s.H, s.M, pass_.channels}) arguments.push_back(static_cast<int32_t>(size));
    arguments.insert(arguments.end(), last.begin(), last.end());
    to_.add(backward, fmt::format("{}_{}", function, capacity.columns), blocks, std::move(arguments), 0, 1,
            threads);
  }

  SlotLaunches& to_;
  SlotPass pass_;
  Capacity over_channels_, over_slots_;
};

Program gsa_fused_recurrent_plan(const ResolvedCase& c, const TensorMap& inputs) {
  Program plan = gsa::empty_plan("gsa.fused_recurrent", c);
  SlotLaunches to(plan, c, inputs, "fused_recurrent");
  const Sizes& s = to.sizes();
  const SlotPass first = to.first_pass(false), second = to.second_pass();
  RecurrentPass keys(to, first), values(to, second);
  const int64_t states = 4 * s.N * s.H * s.M * s.K;
  const PointerArgument y = to.slots("y"), p = to.slots("p");

  const PointerArgument hkt = c.forward() ? to.workspace("hkt_transposed", states) : PointerArgument{};
  keys.readout(y, hkt, c.backward());
  to.softmax(y, p);
  if (c.forward()) {
    to.transpose_back(hkt, to.output("hkt"));
    values.outputs(to.output("o"), to.output("hvt"));
  }
  if (!c.backward()) return to.finish(), plan;

  const PointerArgument dhk0 = to.output("dhk0"),
                        transposed = dhk0.buffer.empty() ? dhk0 : to.workspace("dhk0_transposed", states);
  values.readout(to.slots("dp"), {}, true);
  values.gradients(to.output("dv"), to.output("dhv0"));
  to.softmax_gradient(p, to.slots("dp"), to.slots("dy"));
  keys.outputs(to.output("dq"), {});
  keys.gradients(to.output("dk"), transposed);
  to.transpose_back(transposed, dhk0);
  to.add_gradients(first, second);
  to.finish();
  return plan;
}

/// The recurrence over the slots, as of gla with M key channels (device/recurrent_plan.cpp).
Arithmetic over_slots(const ResolvedCase& c) {
  ResolvedCase slots = gsa::of_passes(c);
  slots.sizes.K = c.sizes.M;
  return gated::recurrent_arithmetic(slots);
}

/// Logits: a lane's fused additions and halvings over K, the scale's own rounding and its product. p stays in
/// fp32.
Arithmetic gsa_fused_recurrent_arithmetic(const ResolvedCase& c) {
  Arithmetic a = over_slots(c);
  a.logits = gated::gamma(Capacity(c.sizes.K).roundings() + 2);
  a.divide = gsa::softmax_error(0);
  a.logits_per_nat = gsa::softmax_error_per_nat();
  return gsa::with_own_decays(a, c);
}

/// As of gla (gla/fused_recurrent_backward_plan.cpp), with one addition more in ds and dg, whose two halves
/// come from the two passes. `inner`: dp a sum over V, scaled by 1; p . dp at most 4 fused additions in a
/// lane and 5 halvings; difference and product round once each.
AdjointArithmetic gsa_fused_recurrent_adjoint_arithmetic(const ResolvedCase& c) {
  ResolvedCase slots = gsa::of_passes(c);
  slots.sizes.K = c.sizes.M, slots.sizes.V = std::max(c.sizes.K, c.sizes.V);
  AdjointArithmetic a = gla::recurrent_adjoint_arithmetic(slots, false);
  const Arithmetic forward = gsa_fused_recurrent_arithmetic(c);
  a.state = forward;
  const double sums = std::max(Capacity(slots.sizes.V).roundings(), Capacity(c.sizes.M).roundings());
  a.adjoint.readout = gated::gamma(sums + 1);
  a.gate_readout = gated::gamma(Capacity(slots.sizes.V).roundings() + 2);
  a.inner = gated::gamma(std::max(Capacity(c.sizes.V).roundings() + 2, 9.0));
  return a;
}

}  // namespace

Kernel gsa_fused_recurrent() {
  Kernel kernel;
  kernel.name = "gsa.fused_recurrent";
  kernel.operator_name = "gsa";
  kernel.summary = "two scans, one token after the other, states in registers; softmax between them";
  kernel.arithmetic_text = "fp32 throughout, softmax too; states once per token by fused multiply-add";
  kernel.limits = gsa::limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = gsa_fused_recurrent_plan;
  kernel.arithmetic = gsa_fused_recurrent_arithmetic;
  kernel.adjoint_arithmetic = gsa_fused_recurrent_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
