// The model of a problem, and what is judged by it, whatever runs it.
#include "src/verification/compare/rounding_model.h"

#include <gtest/gtest.h>

#include "src/verification/compare/rounding.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace rounding_model_test {

constexpr double u = 0x1p-8;
constexpr int64_t kChunk = 64;

/// gla over many chunks, its roundings declared as a kernel in chunks does.
struct Long {
  RandomProblem p;
  const Operator& op = find_operator("gla");
  ReferenceResult reference;

  Long() {
    RandomShape shape;
    shape.T = 70 * kChunk + 9, shape.K = 8, shape.V = 6, shape.dtype = Dtype::bf16;
    draw_problem_of(op, "near-one", shape, 11, p);
    Arithmetic& a = p.problem.arithmetic;
    a.chunk = kChunk, a.readout = a.write = a.write_scaled = a.readout_scaled = u;
    reference = op.evaluate(p.problem);
  }
  RoundingJudgement judged(int threads) {
    p.problem.threads = threads;
    const auto models = rounding_model({&op, &p.problem, HUGE_VAL}, reference);
    const ReferenceOutput& o = reference.outputs.front();
    Tensor got("o", Dtype::bf16, o.axes);
    for (int64_t i = 0; i < got.size(); ++i) got.set(i, o.mid[static_cast<size_t>(i)]);
    return judge_rounding(got, o, models.at(o.name), 100);
  }
};

TEST(RoundingModel, IsTheSameForAnyNumberOfThreads) {
  Long of;
  const RoundingJudgement alone = of.judged(1), together = of.judged(6);
  EXPECT_EQ(alone.output.skipped, "");
  ASSERT_EQ(alone.parts.size(), together.parts.size());
  ASSERT_EQ(alone.carried.size(), 1u);
  ASSERT_EQ(together.carried.size(), 1u);
  EXPECT_GT(alone.carried[0].part.allowed_carried, 0);
  for (size_t i = 0; i <= alone.parts.size(); ++i) {
    const PartStatistics& x = i < alone.parts.size() ? alone.parts[i] : alone.carried[0];
    const PartStatistics& y = i < alone.parts.size() ? together.parts[i] : together.carried[0];
    EXPECT_EQ(x.part.ratio, y.part.ratio) << x.part.where;
    EXPECT_EQ(x.part.allowed_ratio, y.part.allowed_ratio) << x.part.where;
    EXPECT_EQ(x.part.allowed_slope, y.part.allowed_slope) << x.part.where;
    EXPECT_EQ(x.part.carried, y.part.carried) << x.part.where;
    EXPECT_EQ(x.part.allowed_carried, y.part.allowed_carried) << x.part.where;
    EXPECT_EQ(x.evidence, y.evidence) << x.part.where;
  }
}

}  // namespace rounding_model_test
}  // namespace assay
