#include "kernels/scalar/scalar_plan.h"

namespace assay::scalar {
namespace {

const ResolvedCase& checked(const std::string& name, const ResolvedCase& c) {
  require_within(scalar_limits(), c, name);
  return c;
}

Program begun(const std::string& name, const ResolvedCase& c, const Sequences& sequences) {
  Program plan;
  plan.name = name;
  plan.outputs = plan_outputs(c);
  plan.constants = {sequences.table};
  if (sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  return plan;
}

}  // namespace

ScalarPlan::ScalarPlan(const Member& member, const std::string& mode, int64_t chunk, const ResolvedCase& c,
                       const TensorMap& inputs)
    : c(checked(member.kernel_name(mode), c)),
      inputs(inputs),
      sizes(c.sizes),
      sequences(sequences_of(c, chunk)),
      plan(begun(member.kernel_name(mode), c, sequences)),
      gates(add_scalar_gates(plan, member, c, inputs)) {}

void ScalarPlan::use(const std::string& mode) {
  plan.modules.push_back(scalar_module(mode, c, gates));
}

Launch& ScalarPlan::launch(const std::string& function, int64_t blocks, std::vector<Argument> arguments) {
  for (const int64_t size : {sizes.H, sizes.K, sizes.V}) arguments.push_back(static_cast<int32_t>(size));
  return add_launch(plan, plan.modules.back().name, function, blocks, std::move(arguments));
}

Launch& ScalarPlan::tile_launch(const std::string& function, int64_t blocks, int64_t shared_bytes,
                                std::vector<Argument> arguments) {
  Launch& result = launch(function, blocks, std::move(arguments));
  result.shared_bytes = static_cast<uint32_t>(shared_bytes);
  result.arguments.push_back(int32_t{sizes.K % 8 == 0 && sizes.V % 8 == 0});
  return result;
}

KernelLimits scalar_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

Kernel scalar_kernel(const Member& member, const std::string& mode) {
  Kernel kernel;
  kernel.name = member.kernel_name(mode);
  kernel.operator_name = member.operator_name;
  kernel.limits = scalar_limits();
  kernel.exponents_nonpositive = true;
  return kernel;
}

}  // namespace assay::scalar
