#include "reference/sampled_loops.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace assay {

#if defined(__x86_64__)
FlushedSubnormals::FlushedSubnormals() : before_(_mm_getcsr()) {
  constexpr unsigned kResults = 0x8000, kOperands = 0x0040;
  _mm_setcsr(before_ | kResults | kOperands);
}
FlushedSubnormals::~FlushedSubnormals() {
  _mm_setcsr(before_);
}
#else
FlushedSubnormals::FlushedSubnormals() = default;
FlushedSubnormals::~FlushedSubnormals() = default;
#endif

namespace {

/// How far apart the four words of one draw are.
constexpr uint64_t kNextWord = 0x9e3779b97f4a7c15;

namespace plain {
constexpr std::string_view kInstructionSet = "baseline";
constexpr int kTileRows = 1, kTileColumns = 2, kTileSums = 2;
#include "reference/sampled_loops.inc"
}  // namespace plain

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
constexpr std::string_view kInstructionSet = "avx2";
constexpr int kTileRows = 2, kTileColumns = 2, kTileSums = 4;
#include "reference/sampled_loops.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr std::string_view kInstructionSet = "avx512f";
constexpr int kTileRows = 4, kTileColumns = 4, kTileSums = 16;
#include "reference/sampled_loops.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

/// columns x rows.
std::vector<float> transposed(const float* x, int64_t rows, int64_t columns) {
  std::vector<float> y(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[static_cast<size_t>(c * rows + r)] = x[r * columns + c];
  return y;
}

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

void contract_numbers(const SampledContraction<float>& p) {
  const std::vector<float> state = transposed(p.state, p.rows, p.columns);
  std::vector<float> sums(static_cast<size_t>(p.tokens * p.rows));
  sampled_loops().numbers_times_numbers(
      {p.tokens, p.columns, p.rows, p.values, p.columns, 1, state.data(), sums.data()});
  for (size_t i = 0; i < sums.size(); ++i)
    if (p.weights[i] != 0) p.y[i] += p.weights[i] * sums[i];
}

}  // namespace assay
