#include "fuzz/covering_draw.h"

#include <gtest/gtest.h>

#include "fuzz/cost.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace {

/// As a run draws: each case known before the next one.
std::vector<Case> drawn(const Kernel& kernel, const Operator& op, FeaturePairs& pairs, int64_t count,
                        uint64_t seed) {
  std::vector<Case> cases;
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<Case> c = draw_covering_case(pairs, kernel, op, seed, static_cast<uint64_t>(i));
    if (!c) continue;
    pairs.note_drawn(*c);
    cases.push_back(*c);
  }
  return cases;
}

/// Fewer than a minute's cases of the slowest kernel on two busy cores; more where there are most pairs.
TEST(CoveringDrawCampaign, TwoHundredAndFortyCheapCasesShowNineteenInTwentyPairsOfEveryKernel) {
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    FeaturePairs pairs(kernel, op);
    double cost = 0;
    const int count = pairs.possible() > 3300 ? 320 : 240;
    for (const Case& c : drawn(kernel, op, pairs, count, 1)) {
      EXPECT_NO_THROW(validate(c, op)) << token_of(c);
      EXPECT_EQ(parse_token(token_of(c)), c) << token_of(c);
      EXPECT_LE(estimated_cost(c), 1.2e8) << token_of(c);
      cost += estimated_cost(c);
    }
    EXPECT_GE(pairs.drawn(), pairs.possible() * 19 / 20) << kernel.name << " of " << pairs.possible();
    EXPECT_LE(cost / count, 1e7) << kernel.name;
  }
}

TEST(CoveringDraw, TheSameSeedDrawsTheSameCasesAndAnotherOnesDiffer) {
  const Kernel& kernel = find_kernel("gsa.chunk");
  const Operator& op = find_operator("gsa");
  const FeaturePairs fresh(kernel, op);
  FeaturePairs one = fresh, same = fresh, other = fresh;
  const std::vector<Case> cases = drawn(kernel, op, one, 60, 1);
  EXPECT_EQ(cases, drawn(kernel, op, same, 60, 1));
  EXPECT_NE(cases, drawn(kernel, op, other, 60, 2));
}

TEST(CoveringDraw, GoesOnToPairsThatCameUpLeast) {
  const Kernel kernel = test::subject_kernel();
  const Operator op = test::gla_arguments();
  FeaturePairs pairs(kernel, op);
  drawn(kernel, op, pairs, 1200, 1);
  EXPECT_EQ(pairs.drawn(), pairs.possible());
  int64_t once = 0;
  for (size_t a = 0; a < pairs.classes().size(); ++a)
    for (size_t b = 0; b < a; ++b) once += pairs.is_possible(a, b) && pairs.times_drawn(a, b) == 1;
  EXPECT_LE(once, pairs.possible() / 20);
  EXPECT_TRUE(covers_pairs(pairs, 0, 8));
  EXPECT_FALSE(covers_pairs(pairs, 0, 9));
}

TEST(CoveringDrawCampaign, DrawsNothingThatTheKernelRefuses) {
  Kernel kernel = find_kernel("gla.chunk");
  const Operator& op = find_operator("gla");
  kernel.limits.max_K = 96;
  kernel.limits.dtypes = {Dtype::fp16};
  kernel.limits.gate_min = -5;
  kernel.refuses = [](const ResolvedCase& c) {
    return c.sizes.V == 64 && c.sizes.T % 64 == 0 ? "" : "V = 64, whole chunks";
  };
  FeaturePairs pairs(kernel, op);
  const std::vector<Case> cases = drawn(kernel, op, pairs, 200, 1);
  EXPECT_GE(cases.size(), 190u);
  for (const Case& c : cases) {
    EXPECT_EQ(kernel.refuses(resolve(c, op)), "") << token_of(c);
    EXPECT_LE(c.K, 96) << token_of(c);
    const TensorMap inputs = draw_inputs(c, op);
    const auto g = inputs.find("g");
    for (int64_t i = 0; g != inputs.end() && i < g->second.size(); ++i)
      ASSERT_GE(g->second.value(i), -5) << token_of(c);
  }
  EXPECT_GE(pairs.drawn(), pairs.possible() * 19 / 20);

  kernel.refuses = [](const ResolvedCase&) { return "takes nothing"; };
  FeaturePairs none(kernel, op);
  EXPECT_EQ(none.possible(), 0);
  EXPECT_FALSE(draw_covering_case(none, kernel, op, 1, 0).has_value());
}

}  // namespace
}  // namespace assay
