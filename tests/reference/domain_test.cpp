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

}  // namespace
}  // namespace assay
