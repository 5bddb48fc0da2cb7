// The operators whose kernels are those of delta/: delta rules that differ in their gates only.
#pragma once
#include "kernels/kernel.h"

namespace assay::delta {

enum class Gates { none, token, channel };

struct Member {
  std::string name;  ///< "gated_delta_rule"
  Gates gates = Gates::none;
  std::string folder = "delta";  ///< of its modules but the sums'
};

KernelLimits rule_limits();
Kernel fused_recurrent(const Member&);
Kernel chunk(const Member&);

}  // namespace assay::delta
