// The launch that adds up du, and what it adds to the declared arithmetic.
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/tile_layout.h"
#include "kernels/launch_tables.h"
#include "kernels/rwkv6/bonus_total.h"
#include "kernels/rwkv6/bonus_total_layout.h"

namespace assay::rwkv6 {

void add_bonus_total(Program& plan, const std::string& module, const ResolvedCase& c, int64_t chunks) {
  const Sizes& s = c.sizes;
  Launch launch{.module = module, .function = "rwkv6_bonus_total"};
  launch.grid = gated::grid_of(device::blocks_of(s.H * s.K, bonus_elements), plan.name);
  launch.block = {bonus_elements * bonus_parts, 1, 1};
  launch.arguments = {chunks > 0 ? PointerArgument{"bonus_sums", 0} : PointerArgument{},
                      PointerArgument{"du", 0}, chunks, static_cast<int32_t>(s.H), static_cast<int32_t>(s.K)};
  plan.launches.push_back(launch);
}

/// A thread adds a 16th of the chunks, then come four halvings.
AdjointArithmetic with_bonus_total(AdjointArithmetic arithmetic, const ResolvedCase& c,
                                   int64_t chunk_tokens) {
  const int64_t chunks = gated::sequences_of(c, chunk_tokens).chunks;
  arithmetic.total = gated::compounded(
      {arithmetic.total, gated::gamma(static_cast<double>(device::blocks_of(chunks, bonus_parts)) + 4)});
  return arithmetic;
}

}  // namespace assay::rwkv6
