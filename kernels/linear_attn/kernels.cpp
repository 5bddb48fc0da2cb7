// The kernels of linear_attn: the scalar family without gates.
#include "kernels/scalar/kernels.h"

namespace assay {
namespace {

constexpr scalar::Member linear_attn_member{"linear_attn"};

}  // namespace

Kernel linear_attn_chunk() {
  return scalar::chunk_kernel(linear_attn_member);
}
Kernel linear_attn_chunk_hopper() {
  return scalar::chunk_hopper_kernel(linear_attn_member);
}
Kernel linear_attn_fused_chunk() {
  return scalar::fused_chunk_kernel(linear_attn_member);
}
Kernel linear_attn_fused_recurrent() {
  return scalar::recurrent_kernel(linear_attn_member);
}

}  // namespace assay
