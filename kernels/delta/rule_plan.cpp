#include "kernels/delta/rule_plan.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/delta/delta_layout.h"
#include "kernels/device/recurrent_capacity.h"
#include "kernels/device/tile_layout.h"

namespace assay::delta {

using namespace gated;

RulePlan::RulePlan(const Member& member, const std::string& mode, int64_t chunk, const ResolvedCase& c,
                   const TensorMap& inputs)
    : member(member),
      c(c),
      inputs(inputs),
      sizes(c.sizes),
      sequences(sequences_of(c, chunk)),
      gates(input_or_null(inputs, "g")) {
  plan.name = member.name + "." + mode;
  require_within(rule_limits(), c, plan.name);
  plan.outputs = plan_outputs(c);
  plan.constants = {sequences.table};
}

void RulePlan::use(const std::string& source) {
  use_for(source, decays() ? member.gates : Gates::none);
}

void RulePlan::use_for_own_gates(const std::string& source) {
  use_for(source, member.gates);
}

void RulePlan::use_for(const std::string& source, Gates kind) {
  std::string name = "none";
  if (kind != Gates::none)
    name = fmt::format("{}-{}", kind == Gates::token ? "token" : "channel", format(c.gate_dtype).name);
  use_module(fmt::format("{}/{}.{}.{}", member.folder, source, format(c.dtype).name, name));
}

void RulePlan::use_for_any_gates(const std::string& source) {
  use_module(fmt::format("{}/{}.{}", member.folder, source, format(c.dtype).name));
}

void RulePlan::use_module(const std::string& name) {
  module_ = module_of(plan, name);
}

void RulePlan::launch(const std::string& function, int64_t blocks, std::vector<Argument> arguments,
                      const std::vector<Argument>& last, uint32_t shared_bytes, uint32_t rows) {
  if (blocks == 0) return;
  arguments.insert(arguments.end(), last.begin(), last.end());
  add_launch(plan, module_, function, blocks, std::move(arguments), shared_bytes).grid[1] = rows;
}

std::vector<Argument> RulePlan::sized() const {
  return {PointerArgument{"sequences", 0},         scale(),
          Argument(static_cast<int32_t>(sizes.H)), Argument(static_cast<int32_t>(sizes.HV)),
          Argument(static_cast<int32_t>(sizes.K)), Argument(static_cast<int32_t>(sizes.V))};
}

void RulePlan::scan_columns(const std::string& scan, std::vector<Argument> arguments) {
  launch(fmt::format("{}_fused_recurrent_{}{}", member.folder, scan, device::Capacity(sizes.K).columns),
         sizes.N * sizes.HV * device::blocks_of(sizes.V, block_columns), std::move(arguments), sized());
}

void RulePlan::scan_rows(const std::string& scan, std::vector<Argument> arguments) {
  const device::Capacity capacity(sizes.V);
  launch(fmt::format("{}_fused_recurrent_{}_{}", member.folder, scan, capacity.columns),
         sizes.N * sizes.HV * capacity.blocks(sizes.K), std::move(arguments), sized());
}

RulePlan::Kept RulePlan::keep() {
  const int64_t of_values = 4 * rows() * sizes.V;
  return {workspace("residuals", of_values), workspace("updates", of_values), workspace("pulls", of_values),
          output("dbeta").buffer.empty() ? PointerArgument{} : workspace("products", of_values),
          workspace("kept_states",
                    4 * sequences.chunks * sizes.HV * sizes.K * device::Capacity(sizes.V).columns)};
}

RulePlan::KeyGradient RulePlan::key_gradient(const std::string& name) {
  if (!shares_keys()) return {output(name), {}};
  return {{}, workspace(name + "_of_value_heads", 4 * rows() * sizes.K)};
}

PointerArgument RulePlan::gate_gradient() {
  if (!decays() || member.gates == Gates::channel) return output("dg");
  return workspace("dg_of_channels", 4 * rows() * sizes.K);
}

void RulePlan::add_sum(const std::string& function, Dtype dtype, int64_t blocks,
                       std::vector<Argument> arguments) {
  use_module(fmt::format("delta/sums.{}", format(dtype).name));
  launch(function, blocks, std::move(arguments), {});
}

void RulePlan::add_sums(const PointerArgument& products) {
  const auto channels = [&](const PointerArgument& from, const char* to, Dtype dtype, int64_t count) {
    add_sum("delta_sum_channels", dtype, device::blocks_of(rows(), 4),
            {from, output(to), Argument(rows()), Argument(static_cast<int32_t>(count))});
  };
  if (!products.buffer.empty()) channels(products, "dbeta", c.dtype, sizes.V);
  if (decays() && member.gates == Gates::token && !output("dg").buffer.empty())
    channels({"dg_of_channels", 0}, "dg", c.gate_dtype, sizes.K);
  add_group_sums();
}

void RulePlan::add_rate_sums(const PointerArgument& x, const PointerArgument& y) {
  if (!x.buffer.empty())
    add_sum("delta_sum_products", c.dtype, device::blocks_of(rows(), 4),
            {x, y, output("dbeta"), Argument(rows()), Argument(static_cast<int32_t>(sizes.V))});
}

void RulePlan::add_group_sums() {
  if (!shares_keys() || rows() == 0) return;
  const int64_t keys = sizes.B * sizes.T * sizes.H;
  for (const char* name : {"dq", "dk", "dp"})
    if (!output(name).buffer.empty())
      add_sum("delta_sum_group", c.dtype, device::blocks_of(keys * sizes.K, device::block_threads),
              {PointerArgument{std::string(name) + "_of_value_heads", 0}, output(name), Argument(keys),
               Argument(static_cast<int32_t>(sizes.HV / sizes.H)), Argument(static_cast<int32_t>(sizes.K))});
}

double roundings_over_channels(int64_t channels) {
  return std::ceil(static_cast<double>(channels) / 32) + 5;
}

double roundings_over_group(int64_t heads) {
  return heads == 1 ? 0 : std::ceil(static_cast<double>(heads) / 2) + 1;
}

}  // namespace assay::delta
