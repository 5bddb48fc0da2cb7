// The kernels of simple_gla, whose sources serve the scalar family: its gates are inputs.
#include "kernels/scalar/kernels.h"

namespace assay {
namespace {

constexpr scalar::Member simple_gla_member{"simple_gla"};

}  // namespace

Kernel simple_gla_chunk() {
  return scalar::chunk_kernel(simple_gla_member);
}
Kernel simple_gla_chunk_hopper() {
  return scalar::chunk_hopper_kernel(simple_gla_member);
}
Kernel simple_gla_fused_chunk() {
  return scalar::fused_chunk_kernel(simple_gla_member);
}
Kernel simple_gla_fused_recurrent() {
  return scalar::recurrent_kernel(simple_gla_member);
}
Kernel simple_gla_parallel() {
  return scalar::parallel_kernel(simple_gla_member);
}

}  // namespace assay
