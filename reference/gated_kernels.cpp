#include "reference/gated_kernels.h"

#include "src/base/numerics/exponential.h"

namespace assay {
namespace {

#define LOOPS "reference/gated_kernels.inc"
#include "reference/instruction_sets.inc"

}  // namespace

std::vector<GatedKernels> runnable_gated_kernels() {
  return runnable_tables();
}

const GatedKernels& gated_kernels() {
  static const GatedKernels best = runnable_gated_kernels().back();
  return best;
}

}  // namespace assay
