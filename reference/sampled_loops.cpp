#include "reference/sampled_loops.h"

namespace assay {
namespace {

/// How far apart the four words of one draw are.
constexpr uint64_t kNextWord = 0x9e3779b97f4a7c15;

namespace plain {
constexpr std::string_view kInstructionSet = "baseline";
constexpr int kTileRows = 1, kTileColumns = 2;
#include "reference/sampled_loops.inc"
}  // namespace plain

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
constexpr std::string_view kInstructionSet = "avx2";
constexpr int kTileRows = 2, kTileColumns = 2;
#include "reference/sampled_loops.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr std::string_view kInstructionSet = "avx512f";
constexpr int kTileRows = 4, kTileColumns = 4;
#include "reference/sampled_loops.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

}  // namespace

std::vector<SampledLoops> runnable_sampled_loops() {
  std::vector<SampledLoops> runnable = {plain::table};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) runnable.push_back(avx2::table);
  if (__builtin_cpu_supports("avx512f")) runnable.push_back(avx512::table);
#endif
  return runnable;
}

const SampledLoops& sampled_loops() {
  static const SampledLoops best = runnable_sampled_loops().back();
  return best;
}

}  // namespace assay
