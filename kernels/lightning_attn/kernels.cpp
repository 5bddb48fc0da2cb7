// The kernels of lightning_attn: the scalar family with a fixed decay of each head and layer.
#include "kernels/scalar/kernels.h"

#include "src/case/parameters.h"

namespace assay {
namespace {

/// -(8 / H) (1 - layer_idx / num_layers) h.
double lightning_attn_head_decay(const ResolvedCase& c, int64_t head) {
  const double layer = parameter_of(c.case_, *c.op, "layer_idx"),
               layers = parameter_of(c.case_, *c.op, "num_layers");
  return -8 * static_cast<double>(head) * (layers - layer) / (static_cast<double>(c.sizes.H) * layers);
}

constexpr scalar::Member lightning_attn_member{"lightning_attn", lightning_attn_head_decay};

}  // namespace

Kernel lightning_attn_chunk() {
  return scalar::chunk_kernel(lightning_attn_member);
}
Kernel lightning_attn_chunk_hopper() {
  return scalar::chunk_hopper_kernel(lightning_attn_member);
}
Kernel lightning_attn_fused_chunk() {
  return scalar::fused_chunk_kernel(lightning_attn_member);
}
Kernel lightning_attn_fused_recurrent() {
  return scalar::recurrent_kernel(lightning_attn_member);
}

}  // namespace assay
