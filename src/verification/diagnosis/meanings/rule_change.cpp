#include "src/verification/diagnosis/meanings/rule_change.h"

namespace assay {
namespace {

constexpr int64_t kMostTokens = 4096;

}  // namespace

RuleSquare inverse_of_one_plus(const RuleSquare& L) {
  RuleSquare X(L.n);
  for (int64_t j = 0; j < L.n; ++j)
    for (int64_t i = j; i < L.n; ++i) {
      double sum = i == j ? 1 : 0;
      for (int64_t m = j; m < i; ++m) sum -= L(i, m) * X(m, j);
      X(i, j) = sum / (1 + L(i, i));
    }
  return X;
}

bool is_small_rule(const FailingRun& run) {
  const Sizes& s = run.problem.sizes;
  return s.B * s.T * s.HV <= kMostTokens && s.K > 0 && s.V > 0;
}

}  // namespace assay
