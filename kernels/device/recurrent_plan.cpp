#include "kernels/device/recurrent_plan.h"

#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/scan_layout.h"
#include "kernels/launch_tables.h"

namespace assay::gated {

void add_recurrent(Program& plan, const RecurrentKernel& kernel, const ResolvedCase& c,
                   const TensorMap& inputs) {
  const Sizes& s = c.sizes;
  plan.modules.push_back(kernel.module);
  Launch launch{.module = kernel.module.name,
                .function = fmt::format("{}{}", kernel.function, device::capacity_for(s.K))};
  launch.grid = grid_of(s.N * s.H * device::blocks_of(s.V, device::scan_columns), kernel.name);
  launch.block = {device::attended_threads, 1, 1};
  std::vector<Argument> bonus;
  if (!kernel.bonus.empty()) bonus = {PointerArgument{kernel.bonus, 0}};
  launch.arguments = joined(
      {{PointerArgument{kernel.query, 0}, PointerArgument{"k", 0}, PointerArgument{"v", 0}, kernel.gates},
       bonus,
       {input_or_null(inputs, "initial_state"), s.T > 0 ? PointerArgument{"o", 0} : PointerArgument{},
        PointerArgument{"final_state", 0}, PointerArgument{"sequences", 0}, Argument::rounded(c.scale),
        static_cast<int32_t>(s.H), static_cast<int32_t>(s.K), static_cast<int32_t>(s.V)}});
  plan.launches.push_back(launch);
}

/// S = fma(e, S, fl(k v)): one rounding of the product (write) and one of the sum (step). e is 1 + p rounded
/// once (2^-25 below 1) with p within 4 u relative, or, for more than 0.3466 nats, ex2 (2^-22 = 4 u <= 11.6 u
/// |x|); its argument g log2(e) has two roundings. Readout: fma chain of a lane's key channels split over 4
/// sums, 2 + 2 more additions, the scale and its own rounding: gamma of their number.
Arithmetic recurrent_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  Arithmetic a;
  a.decay = 0x1p-25;
  a.decay_per_nat = 16 * u;
  a.write = u;
  a.step = u;
  a.stored = 1;
  const double roundings = static_cast<double>(device::capacity_for(s.K)) / 16 + 4 + 2;
  a.readout = roundings * u / (1 - roundings * u);
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace assay::gated
