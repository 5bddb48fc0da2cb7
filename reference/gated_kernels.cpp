#include "reference/gated_kernels.h"

namespace assay {
namespace {

namespace plain {
constexpr std::string_view kInstructionSet = "baseline";
constexpr int kRegisterBytes = 16;
#include "reference/gated_kernels.inc"
}  // namespace plain

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
constexpr std::string_view kInstructionSet = "avx2";
constexpr int kRegisterBytes = 32;
#include "reference/gated_kernels.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr std::string_view kInstructionSet = "avx512f";
constexpr int kRegisterBytes = 64;
#include "reference/gated_kernels.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

}  // namespace

std::vector<GatedKernels> runnable_gated_kernels() {
  std::vector<GatedKernels> runnable = {plain::table};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) runnable.push_back(avx2::table);
  if (__builtin_cpu_supports("avx512f")) runnable.push_back(avx512::table);
#endif
  return runnable;
}

const GatedKernels& gated_kernels() {
  static const GatedKernels best = runnable_gated_kernels().back();
  return best;
}

}  // namespace assay
