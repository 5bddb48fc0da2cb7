// One key at every token and a rate of 2: no bound of what a chunked kernel declares stays finite. Shown by
// an arithmetic that errs by no more than that, and always to its own disadvantage.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel.h"
#include "src/case/case.h"

namespace assay {
namespace {

/// One key and value channel.
struct RepeatedKey {
  Case c;
  TensorMap inputs;
  Arithmetic declared;

  RepeatedKey(Dtype dtype, int64_t T) {
    c.kernel = "delta_rule.chunk", c.values = "reflected", c.decay = "none", c.dtype = dtype;
    c.T = T, c.K = c.V = 1;
    const Kernel& kernel = find_kernel(c.kernel);
    const Operator& op = find_operator(kernel.operator_name);
    inputs = draw_inputs(c, op);
    declared = kernel.arithmetic(resolve_unchecked(c, op));
  }
  double value(const char* name, int64_t t) const { return inputs.at(name).value(t); }

  ReferenceOutput outputs() const {
    Problem problem;
    problem.sizes = sizes_of(c), problem.inputs = &inputs, problem.arithmetic = declared;
    problem.scale = scale_of(c, find_operator("delta_rule"));
    return find_operator("delta_rule").evaluate(problem).outputs.front();
  }

  /// The state after every token, less the exact one: scores of earlier tiles are off by `pairs`, updates by
  /// `update`; all else is exact.
  std::vector<double> worst_errors() const {
    std::vector<double> errors;
    double exact = 0, start = 0;
    std::vector<double> updates;
    size_t before = 0;
    for (int64_t t = 0; t < c.T; ++t) {
      const double k = value("k", t), v = value("v", t), beta = value("beta", t);
      const double so_far = errors.empty() ? 0 : errors.back(), worse = so_far * k >= 0 ? 1 : -1;
      if (t % declared.chunk == 0) start = exact + so_far, updates.clear();
      if (t % declared.solve_tokens == 0) before = updates.size();
      double read = k * start;
      for (size_t m = 0; m < updates.size(); ++m) {
        const double pair = k * value("k", t - static_cast<int64_t>(updates.size() - m));
        read += pair * updates[m] + (m < before ? worse * declared.pairs * std::fabs(pair * updates[m]) : 0);
      }
      double update = beta * (v - read);
      update -= worse * declared.update * std::fabs(update);
      updates.push_back(update);
      const double next = exact + beta * k * (v - k * exact);
      errors.push_back((exact + so_far + k * update) - next);
      exact = next;
    }
    return errors;
  }
};

struct Format {
  Dtype dtype;
  int64_t overflows;  ///< by the arithmetic above
};
class RepeatedKeys : public testing::TestWithParam<Format> {};

TEST_P(RepeatedKeys, LeaveNoBoundFiniteThatWouldBeTrue) {
  const RepeatedKey one(GetParam().dtype, GetParam().overflows + 1);
  const ReferenceOutput o = one.outputs();
  const std::vector<double> errors = one.worst_errors();
  EXPECT_GE(std::fabs(errors.back()), 0x1p127);
  EXPECT_TRUE(std::isinf(o.bound.back()));
  int64_t finite = 0;
  for (size_t t = 0; t < errors.size(); ++t) {
    const double of_o = std::fabs(one.value("q", static_cast<int64_t>(t)) * errors[t]);
    EXPECT_LE(of_o * scale_of(one.c, find_operator("delta_rule")), o.bound[t]) << t;
    finite += std::isfinite(o.bound[t]);
  }
  // The bound is lost no earlier than at half of that.
  EXPECT_GT(finite, GetParam().overflows / 2);
}

INSTANTIATE_TEST_SUITE_P(Delta, RepeatedKeys,
                         testing::Values(Format{Dtype::bf16, 1200}, Format{Dtype::fp16, 3620}),
                         [](const auto& info) { return std::string(format(info.param.dtype).name); });

}  // namespace
}  // namespace assay
