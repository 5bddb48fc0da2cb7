// The kernels of retention: the scalar family with a fixed decay of each head.
#include "kernels/scalar/kernels.h"

#include <cmath>

namespace assay {
namespace {

/// log(1 - 2^(-5-h)).
double retention_head_decay(const ResolvedCase&, int64_t head) {
  return std::log1p(-std::ldexp(1.0, static_cast<int>(-5 - head)));
}

constexpr scalar::Member retention_member{"retention", retention_head_decay};

}  // namespace

Kernel retention_chunk() {
  return scalar::chunk_kernel(retention_member);
}
Kernel retention_chunk_hopper() {
  return scalar::chunk_hopper_kernel(retention_member);
}
Kernel retention_fused_chunk() {
  return scalar::fused_chunk_kernel(retention_member);
}
Kernel retention_fused_recurrent() {
  return scalar::recurrent_kernel(retention_member);
}
Kernel retention_parallel() {
  return scalar::parallel_kernel(retention_member);
}

}  // namespace assay
