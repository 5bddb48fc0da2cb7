#include "reference/domain.h"

#include <gtest/gtest.h>

#include "tests/reference/random_problem.h"

namespace assay {
namespace {

TEST(Domain, is_silent_about_inputs_inside_it_limits_included) {
  RandomProblem p;
  draw_problem({}, 1, p);
  p.at("g").set(0, -1e4);
  p.at("g").set(1, 0);
  EXPECT_TRUE(outside_domain(find_operator("gla"), p.inputs).empty());
}

TEST(Domain, names_the_first_element_outside_and_counts_the_others) {
  const struct {
    const char* input;
    double value;
  } cases[] = {{"g", 0.5},      {"g", -10001}, {"g", -HUGE_VAL},      {"g", NAN},
               {"q", HUGE_VAL}, {"v", NAN},    {"initial_state", NAN}};
  for (const auto& c : cases) {
    RandomProblem p;
    draw_problem({}, 1, p);
    p.at(c.input).set(6, c.value);
    p.at(c.input).set(9, c.value);
    const auto faults = outside_domain(find_operator("gla"), p.inputs);
    ASSERT_EQ(faults.size(), 1u) << c.input << " " << c.value;
    EXPECT_EQ(faults[0].elements, 2);
    EXPECT_EQ(faults[0].element, p.at(c.input).element_name(6));
    EXPECT_NE(describe(faults[0]).find(c.input), std::string::npos);
  }
}

/// Keys of one direction and length at all tokens of one head.
std::optional<DomainFault> of_keys(double length, double beta, double gate, int64_t tokens,
                                   std::vector<int64_t> cu_seqlens = {}) {
  RandomProblem p;
  RandomShape shape;
  shape.T = tokens, shape.K = 2;
  draw_problem_of(find_operator("kda"), "none", shape, 1, p);
  for (int64_t i = 0; i < p.at("k").size(); ++i) p.at("k").set(i, i % 2 ? 0 : length), p.at("g").set(i, gate);
  for (int64_t i = 0; i < p.at("beta").size(); ++i) p.at("beta").set(i, beta);
  return lengthening(find_operator("kda"), cu_seqlens, p.inputs);
}

TEST(Domain, ends_where_transitions_lengthen_a_state_1024_fold) {
  EXPECT_FALSE(of_keys(1, 2, 0, 100));
  EXPECT_FALSE(of_keys(1.25, 1, 0, 100));  // |1 - 1.25^2| < 1
  // 1 - 2 1.0625^2 = -1.2578125, whose 31st power is 1226.
  EXPECT_FALSE(of_keys(1.0625, 2, 0, 30));
  const auto fault = of_keys(1.0625, 2, 0, 100);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->elements, 31);
  EXPECT_EQ(fault->input, "k");
  EXPECT_TRUE(of_keys(1.0625, 2, -0.25, 100));  // decays aside
  EXPECT_FALSE(of_keys(1.0625, 2, 0, 100, {0, 25, 50, 75, 100}));
}

TEST(Domain, of_the_generalised_rule_ends_where_what_it_reads_grows) {
  for (const double opposed : {-1.0, -2.0, -2.5, 0.5}) {
    RandomProblem p;
    RandomShape shape;
    shape.T = 64, shape.K = 2;
    draw_problem_of(find_operator("rwkv7"), "none", shape, 1, p);
    for (int64_t i = 0; i < p.at("a").size(); ++i)
      p.at("a").set(i, i % 2 ? 0 : 1), p.at("b").set(i, opposed * p.at("a").value(i));
    EXPECT_EQ(lengthening(find_operator("rwkv7"), {}, p.inputs).has_value(), opposed < -2 || opposed > 0);
  }
}

TEST(Domain, of_a_rule_that_reads_another_key_ends_where_what_that_reads_grows) {
  for (const double along : {1.0, 2.0, 2.5, -0.5}) {
    RandomProblem p;
    RandomShape shape;
    shape.T = 64, shape.K = 2;
    draw_problem_of(find_operator("comba"), "none", shape, 1, p);
    for (int64_t i = 0; i < p.at("k").size(); ++i)
      p.at("k").set(i, i % 2 ? 0 : 1), p.at("p").set(i, along * p.at("k").value(i));
    for (int64_t t = 0; t < shape.T; ++t) p.at("beta").set(t, 1);
    EXPECT_EQ(lengthening(find_operator("comba"), {}, p.inputs).has_value(), along > 2 || along < 0);
  }
}

/// 1.5^18 is above 2^10: the sixth token of three writes.
TEST(Domain, of_a_rule_of_several_writes_ends_where_those_of_its_tokens_grow) {
  const Operator& op = find_operator("gated_delta_product");
  for (const double rate : {2.0, 2.5}) {
    RandomProblem p;
    RandomShape shape;
    shape.T = 12, shape.K = 2, shape.M = 3, shape.cu_seqlens = {0, 4, 12};
    draw_problem_of(op, "none", shape, 1, p);
    for (int64_t i = 0; i < p.at("k").size(); ++i) p.at("k").set(i, i % 2 ? 0 : 1);
    for (int64_t i = 0; i < p.at("beta").size(); ++i) p.at("beta").set(i, rate);
    const auto fault = lengthening(op, shape.cu_seqlens, p.inputs);
    EXPECT_EQ(fault.has_value(), rate > 2);
    if (!fault) continue;
    EXPECT_EQ(fault->element, "k[b=0,t=4,m=0,h=0,k=0]");
    EXPECT_EQ(fault->elements, 6);
  }
}

}  // namespace
}  // namespace assay
