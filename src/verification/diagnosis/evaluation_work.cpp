#include "src/verification/diagnosis/evaluation_work.h"

#include <algorithm>

#include "src/base/numerics/counted_work.h"

namespace assay {
namespace {

/// Nanoseconds: of all, and of a token's head; gradients take so many times as long.
constexpr double kOfAll = 10'000, kOfToken = 300, kBackward = 3;

/// Of a cell of a token's state, in nanoseconds: bounds take more of it than values do.
double of_cell(BoundShape shape) {
  switch (shape) {
    case BoundShape::sums:
      return 13;
    case BoundShape::quotient:
      return 20;
    case BoundShape::softmax:
      return 32;
    case BoundShape::norms:
      return 130;
  }
  return 0;
}

}  // namespace

void count_evaluation(const Operator& op, const Problem& problem, bool forward, bool backward) {
  const Sizes& s = problem.sizes;
  const auto tokens = static_cast<double>(s.B * s.T * std::max(s.H, s.HV));
  const auto cells = static_cast<double>(std::max(s.K * s.V, s.M * (s.K + s.V)));
  const double directions = (forward ? 1 : 0) + (backward ? kBackward : 0);
  count_work(directions, kOfAll + tokens * (kOfToken + cells * of_cell(op.bound_shape)));
}

}  // namespace assay
