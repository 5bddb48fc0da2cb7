#include "reference/safe_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/reference/random_problem.h"

namespace assay {
namespace {

/// One key channel: the same key at all tokens, read as it is.
struct OneKey {
  RandomProblem p;
  int64_t tokens;
  double rate;

  OneKey(int64_t tokens, double rate, double gate = 0) : tokens(tokens), rate(rate) {
    RandomShape shape;
    shape.T = tokens, shape.K = 1, shape.V = 2, shape.initial_state = false, shape.cotangents = true;
    draw_problem_of(find_operator("gated_delta_rule"), "none", shape, 7, p);
    p.problem.scale = 1;
    for (const auto& [name, value] : {std::pair{"q", 1.0}, {"k", 1.0}, {"beta", rate}, {"g", gate}})
      for (int64_t i = 0; i < p.at(name).size(); ++i) p.at(name).set(i, value);
    for (int64_t i = 0; i < p.at("dfinal_state").size(); ++i) p.at("dfinal_state").set(i, 0);
  }
  /// Updates alone are rounded.
  static Arithmetic declared(double u) {
    Arithmetic a;
    a.chunk = 64, a.solve_tokens = 16, a.update = u;
    return a;
  }
  std::vector<LostState> state(double u, const std::vector<int64_t>& cu_seqlens = {}) const {
    return lost_states(find_operator("gated_delta_rule"), declared(u), cu_seqlens, p.inputs);
  }
  std::vector<LostState> adjoint(double u) const {
    return lost_adjoints(find_operator("gated_delta_rule"), declared(u), {}, p.inputs, 1);
  }
};

/// A value channel's state without decay, as numbers: the exact one, and one whose updates are each off by
/// `u` of themselves, up or down, whichever is worse. Returns after how many tokens they differ by the
/// largest that the exact one ever was. `wrote` is what a token's query adds before its update,
/// `value` what its update brings; `tie`: up where both are as bad.
int64_t lost_after(const std::vector<double>& wrote, const std::vector<double>& value, double rate, double u,
                   bool tie) {
  double exact = 0, rounded = 0, largest = 0;
  for (size_t t = 0; t < wrote.size(); ++t) {
    exact += wrote[t], rounded += wrote[t];
    largest = std::fmax(largest, std::fabs(exact));
    exact += rate * (value[t] - exact);
    const double update = rate * (value[t] - rounded), up = rounded + update * (1 + u),
                 down = rounded + update * (1 - u);
    const double worse = std::fabs(up - exact) - std::fabs(down - exact);
    rounded = worse > 0 || (worse == 0 && tie) ? up : down;
    largest = std::fmax(largest, std::fabs(exact));
    if (std::fabs(rounded - exact) >= largest && rounded != exact) return static_cast<int64_t>(t) + 1;
  }
  return -1;
}

/// The smaller, where -1 is none.
int64_t fewer(int64_t a, int64_t b) {
  return a < 0 || b < 0 ? std::max(a, b) : std::min(a, b);
}

int64_t lost_after(const std::vector<double>& wrote, const std::vector<double>& value, double rate,
                   double u) {
  const int64_t up = lost_after(wrote, value, rate, u, true), down = lost_after(wrote, value, rate, u, false);
  return fewer(up, down);
}

std::vector<double> channel(const RandomProblem& p, const char* name, int64_t j, bool back) {
  std::vector<double> y;
  const Tensor& x = p.inputs.at(name);
  for (int64_t t = 0; t < x.axes[1].size; ++t) y.push_back(x.value(t * x.axes[3].size + j));
  if (back) std::reverse(y.begin(), y.end());
  return y;
}

TEST(SafeRange, EndsWhereAnArithmeticWithinTheDeclaredOneLosesTheState) {
  for (const double u : {0x1p-9, 0x1p-8, 0x1p-7}) {
    OneKey one(500, 2);
    const std::vector<double> none(500, 0);
    const auto least = [&](const char* name, bool back) {
      const auto of = [&](int64_t j) {
        const std::vector<double> x = channel(one.p, name, j, back);
        return back ? lost_after(x, none, 2, u) : lost_after(none, x, 2, u);
      };
      return fewer(of(0), of(1));
    };
    const int64_t first = least("v", false);
    const std::vector<LostState> states = one.state(u);
    ASSERT_EQ(states.size(), 1u) << u;
    EXPECT_EQ(states[0].tokens, first) << u;
    EXPECT_EQ(states[0].token, first - 1) << u;
    EXPECT_EQ(states[0].first, "k[b=0,t=0,h=0,k=0]");
    EXPECT_NE(describe(states[0]).find("within " + std::to_string(first) + " tokens"), std::string::npos);
    // Backwards, which counts from the last token.
    const std::vector<LostState> adjoints = one.adjoint(u);
    ASSERT_EQ(adjoints.size(), 1u) << u;
    EXPECT_EQ(adjoints[0].tokens, least("do", true)) << u;
    EXPECT_EQ(adjoints[0].token, 500 - adjoints[0].tokens) << u;
    EXPECT_EQ(adjoints[0].first, "k[b=0,t=499,h=0,k=0]");
    EXPECT_NE(describe(adjoints[0]).find("dL/dS"), std::string::npos);
  }
}

/// What is proved of the declared arithmetic is no narrower there.
TEST(SafeRange, NoBoundIsNarrowerThanTheStateWhereItEnds) {
  OneKey one(500, 2);
  one.p.problem.arithmetic = OneKey::declared(0x1p-9);
  const int64_t last = one.state(0x1p-9).at(0).token;
  const ReferenceOutput o = find_operator("gated_delta_rule").evaluate(one.p.problem).outputs.front();
  for (int64_t t = std::max<int64_t>(0, last - 63); t <= last; ++t)
    EXPECT_GE(o.bound[static_cast<size_t>(last * 2)], std::fabs(o.mid[static_cast<size_t>(t * 2)])) << t;
}

TEST(SafeRange, EndsNowhereWhereErrorsAreForgotten) {
  for (const double rate : {0.5, 1.0, 1.5, 1.9}) {
    EXPECT_TRUE(OneKey(2000, rate).state(0x1p-9).empty()) << rate;
    EXPECT_TRUE(OneKey(2000, rate).adjoint(0x1p-9).empty()) << rate;
  }
  EXPECT_TRUE(OneKey(2000, 2, -0.25).state(0x1p-9).empty());
  EXPECT_TRUE(OneKey(2000, 2).state(0x1p-22).empty());
  EXPECT_TRUE(OneKey(2000, 2).state(0).empty());
  // A state that a rate of 1 made zero is off by more than it is, and by less than it was.
  OneKey zero(100, 1);
  for (int64_t i = 2; i < 200; ++i) zero.p.at("v").set(i, 0);
  EXPECT_TRUE(zero.state(0x1p-9).empty());
}

TEST(SafeRange, IsOfASequence) {
  const OneKey one(500, 2);
  std::vector<int64_t> many;
  for (int64_t at = 0; at <= 500; at += 50) many.push_back(at);
  EXPECT_TRUE(one.state(0x1p-9, many).empty());
  const std::vector<LostState> lost = one.state(0x1p-9, {0, 50, 500});
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].sequence, 1);
  EXPECT_EQ(lost[0].first, "k[b=0,t=50,h=0,k=0]");
}

}  // namespace
}  // namespace assay
