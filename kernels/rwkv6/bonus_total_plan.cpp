#include "kernels/device/product_arithmetic.h"
#include "kernels/launch_tables.h"
#include "kernels/rwkv6/bonus_total.h"

namespace assay::rwkv6 {
namespace {

/// As in bonus_total.cuh: elements per block, threads per element.
constexpr int64_t elements = 8, parts = 16;

}  // namespace

void add_bonus_total(Plan& plan, const std::string& module, const Case& c, int64_t chunks) {
  const Sizes s = sizes_of(c);
  Launch launch{.module = module, .function = "rwkv6_bonus_total"};
  launch.grid = gated::grid_of((s.H * s.K + elements - 1) / elements, plan.kernel);
  launch.block = {128, 1, 1};
  launch.arguments = {chunks > 0 ? PointerArgument{"bonus_sums", 0} : PointerArgument{},
                      PointerArgument{"du", 0}, chunks, static_cast<int32_t>(s.H), static_cast<int32_t>(s.K)};
  plan.launches.push_back(launch);
}

/// A thread adds every 16th chunk, then come four halvings.
GatedAdjointArithmetic with_bonus_total(GatedAdjointArithmetic arithmetic, const Case& c,
                                        int64_t chunk_tokens) {
  const int64_t chunks = gated::sequences_of(c, sizes_of(c), chunk_tokens).chunks;
  arithmetic.total = gated::compounded(
      {arithmetic.total, gated::gamma(static_cast<double>((chunks + parts - 1) / parts) + 4)});
  return arithmetic;
}

}  // namespace assay::rwkv6
