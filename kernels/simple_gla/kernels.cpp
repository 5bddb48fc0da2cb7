// The kernels of simple_gla, whose sources serve the scalar family: its gates are inputs.
#include "kernels/scalar/kernels.h"

namespace assay {
namespace {

constexpr scalar::Member member{"simple_gla"};

}  // namespace

Kernel simple_gla_chunk() {
  return scalar::chunk_kernel(member);
}
Kernel simple_gla_fused_chunk() {
  return scalar::fused_chunk_kernel(member);
}
Kernel simple_gla_fused_recurrent() {
  return scalar::recurrent_kernel(member);
}
Kernel simple_gla_parallel() {
  return scalar::parallel_kernel(member);
}

}  // namespace assay
