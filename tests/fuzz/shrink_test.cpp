#include "fuzz/shrink.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/generator.h"
#include "src/case/layouts.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace {

Verification failing(const Case& c, const std::string& cause) {
  Verification v;
  v.kernel = c.kernel;
  v.case_ = c;
  v.token = token_of(c);
  v.verdict = Verdict::finding;
  v.cause = cause;
  return v;
}

/// A fault seen only where a chunk is partial and some gate in it is below -80: the shape of an overflow.
bool overflows(const Case& c, const Operator& op) {
  if (c.T % 64 == 0 || !c.cu_seqlens.empty()) return false;
  const TensorMap inputs = draw_inputs(c, op);
  const auto g = inputs.find("g");
  if (g == inputs.end()) return false;
  const int64_t row = c.H * c.K;
  for (int64_t b = 0; b < c.B; ++b)
    for (int64_t i = (c.T / 64 * 64) * row; i < c.T * row; ++i)
      if (g->second.value(b * c.T * row + i) < -80) return true;
  return false;
}

/// Two causes: which one a case has depends on its width. Shrinking from one must not end in the other.
SameCause overflow_with_cause(const Operator& op, std::string cause) {
  return [&op, cause](const Case& c) -> std::optional<Verification> {
    if (!overflows(c, op)) return std::nullopt;
    if ((c.K >= 5 ? "wide" : "narrow") != cause) return std::nullopt;
    return failing(c, cause);
  };
}

std::vector<Case> overflowing_cases(const Operator& op, int64_t least_K) {
  std::vector<Case> cases;
  for (uint64_t i = 0; cases.size() < 12; ++i) {
    const Case c = draw_case(test::subject_kernel(), op, {}, 7, i);
    if (c.K >= least_K && c.cu_seqlens.empty() && overflows(c, op)) cases.push_back(c);
  }
  return cases;
}

TEST(Shrink, AnOverflowEndsAtOneBatchEntryOneHeadOneChunkAndOneSimpleGate) {
  const Operator op = test::gla_arguments();
  std::vector<int64_t> lengths;
  for (const Case& c : overflowing_cases(op, 1)) {
    const SameCause same = [&](const Case& candidate) -> std::optional<Verification> {
      if (!overflows(candidate, op)) return std::nullopt;
      return failing(candidate, "overflow");
    };
    const Shrunk shrunk = shrink(failing(c, "overflow"), op, 240, same);
    const Case& small = shrunk.smallest.case_;
    EXPECT_TRUE(shrunk.finished) << shrunk.smallest.token;
    EXPECT_EQ(small.B, 1) << shrunk.smallest.token;
    EXPECT_EQ(small.H, 1) << shrunk.smallest.token;
    EXPECT_EQ(small.K, 1) << shrunk.smallest.token;
    EXPECT_EQ(small.V, 1) << shrunk.smallest.token;
    EXPECT_FALSE(small.scale.has_value()) << shrunk.smallest.token;
    EXPECT_TRUE(small.decay == "constant:-100" || small.overrides.size() == 1) << shrunk.smallest.token;
    lengths.push_back(small.T);
  }
  std::sort(lengths.begin(), lengths.end());
  EXPECT_LE(lengths[lengths.size() / 2], 128);
}

TEST(Shrink, TheCauseStaysTheSameWhereASmallerCaseHasAnother) {
  const Operator op = test::gla_arguments();
  for (const Case& c : overflowing_cases(op, 5)) {
    const Shrunk shrunk = shrink(failing(c, "wide"), op, 400, overflow_with_cause(op, "wide"));
    EXPECT_EQ(shrunk.smallest.cause, "wide");
    EXPECT_EQ(shrunk.smallest.case_.K, 5) << shrunk.smallest.token;
    EXPECT_TRUE(overflows(parse_token(shrunk.smallest.token), op)) << shrunk.smallest.token;
  }
}

TEST(Shrink, ViewsEndAtTheOneInputThatMatters) {
  const Operator op = test::gla_arguments();
  const std::pair<std::string, std::string> rows[] = {
      {"padded", "k=padded"},
      {"heads-first,q=joined,k=padded,v=transposed", "k=padded"},
      {"k=9000:700:40:2", "k=joined"},
  };
  for (const auto& [layout, smallest] : rows) {
    Case c = parse_token("gla.subject/B2/T10/H2/K4/V3/fp32/g-fp32/none/s3");
    c.layout = layout;
    const Shrunk shrunk =
        shrink(failing(c, "views"), op, 400, [&](const Case& candidate) -> std::optional<Verification> {
          if (!resolve(candidate, op).inputs[1].layout) return std::nullopt;  // k is read row by row
          return failing(candidate, "views");
        });
    EXPECT_EQ(shrunk.smallest.case_.layout, smallest) << shrunk.smallest.token;
  }
}

TEST(Shrink, TheBudgetEndsItWithTheSmallestCaseSoFar) {
  const Operator op = test::gla_arguments();
  const Case c = overflowing_cases(op, 5).front();
  int64_t calls = 0;
  const Shrunk shrunk =
      shrink(failing(c, "x"), op, 3, [&](const Case& candidate) -> std::optional<Verification> {
        ++calls;
        if (!overflows(candidate, op)) return std::nullopt;
        return failing(candidate, "x");
      });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(shrunk.evaluations, 3);
  EXPECT_FALSE(shrunk.finished);
}

TEST(Shrink, ACaseThatFailsOnlyAsItIsStaysAsItIs) {
  const Operator op = test::gla_arguments();
  const Case c = overflowing_cases(op, 5).front();
  const Shrunk shrunk =
      shrink(failing(c, "x"), op, 1000, [](const Case&) { return std::optional<Verification>(); });
  EXPECT_EQ(shrunk.smallest.case_, c);
  EXPECT_TRUE(shrunk.finished);
}

TEST(Shrink, EveryCandidateIsAValidCaseThatDiffersFromItsOrigin) {
  const Operator op = test::gla_arguments();
  for (uint64_t i = 0; i < 12; ++i) {
    Case c = draw_case(test::subject_kernel(), op, {}, 11, i);
    if (c.values != "exact" && c.T > 0 && c.without.empty()) c.overrides = {"g[0,0,0,0]=-3.75"};
    for (const Case& candidate : simpler_cases(c, op)) {
      EXPECT_NO_THROW(validate(candidate, op)) << token_of(candidate);
      EXPECT_NO_THROW(draw_inputs(candidate, op)) << token_of(candidate);
      EXPECT_FALSE(candidate == c) << token_of(c);
    }
  }
}

}  // namespace
}  // namespace assay
