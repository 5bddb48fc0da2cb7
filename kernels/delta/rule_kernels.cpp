// The rows of kernels.def whose operators are delta rules.
#include "kernels/delta/rule_kernels.h"

#include "kernels/gla/plans.h"

namespace assay {
namespace delta {
namespace {

const Member delta_rule{"delta_rule", Gates::none}, gated_delta_rule{"gated_delta_rule", Gates::token},
    kda{"kda", Gates::channel};

}  // namespace

KernelLimits rule_limits() {
  KernelLimits limits = gla::channel_limits();
  limits.value_heads = true;
  return limits;
}

}  // namespace delta

Kernel delta_rule_fused_recurrent() {
  return delta::fused_recurrent(delta::delta_rule);
}
Kernel gated_delta_rule_fused_recurrent() {
  return delta::fused_recurrent(delta::gated_delta_rule);
}
Kernel kda_fused_recurrent() {
  return delta::fused_recurrent(delta::kda);
}

Kernel delta_rule_chunk() {
  return delta::chunk(delta::delta_rule);
}
Kernel gated_delta_rule_chunk() {
  return delta::chunk(delta::gated_delta_rule);
}
Kernel kda_chunk() {
  return delta::chunk(delta::kda);
}

}  // namespace assay
