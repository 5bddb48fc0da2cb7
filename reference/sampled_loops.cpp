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

#define LOOPS "reference/sampled_loops.inc"
#include "reference/instruction_sets.inc"

/// columns x rows.
std::vector<float> transposed(const float* x, int64_t rows, int64_t columns) {
  std::vector<float> y(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[static_cast<size_t>(c * rows + r)] = x[r * columns + c];
  return y;
}

}  // namespace

std::vector<SampledLoops> runnable_sampled_loops() {
  return runnable_tables();
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
