// Which cases a mutant is looked at on more closely.
#include "src/campaign/mutate/case_choice.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

CleanCase of_cost(uint64_t lane_instructions, const char* values, const char* decay,
                  std::vector<uint8_t> executed) {
  CleanCase clean;
  clean.outcome.lane_instructions = lane_instructions;
  clean.case_.values = values, clean.case_.decay = decay;
  clean.reach.executed[{"m", 0}] = std::move(executed);
  return clean;
}

TEST(CaseChoice, IsOfCheapOnesThenOfOtherKinds) {
  std::vector<CleanCase> cases;
  cases.push_back(of_cost(900'000, "normal", "mild", {came_to, 0}));
  cases.push_back(of_cost(100'000, "normal", "none", {came_to, 0}));
  cases.push_back(of_cost(200'000, "normal", "none", {came_to, 0}));
  cases.push_back(of_cost(300'000, "exact", "none", {came_to, 0}));
  cases.push_back(of_cost(400'000, "normal", "strong", {came_to, 0}));
  cases.push_back(of_cost(250'000, "normal", "none", {came_to, 0}));
  const std::vector<size_t> reaching = {0, 1, 2, 3, 4, 5}, none, differing = {4};
  const CaseChoice choice{cases, reaching, none, {"m", 0}};
  EXPECT_EQ(choice.small(), (std::vector<size_t>{1, 2, 5, 3, 4, 0}));
  EXPECT_EQ(choice.varied(), (std::vector<size_t>{1, 3, 2, 4, 0, 5}));
  EXPECT_EQ((CaseChoice{cases, reaching, differing, {"m", 0}}).small(),
            (std::vector<size_t>{4, 1, 2, 5, 3, 0}));
}

TEST(CaseChoice, ChecksWhatShowsMostBesideTheCheapOnes) {
  std::vector<CleanCase> cases;
  std::vector<size_t> reaching;
  for (uint64_t i = 0; i < 14; ++i) {
    cases.push_back(of_cost(20'000 + i, "normal", "none", {came_to, i < 10 ? uint8_t{0} : uint8_t{came_to}}));
    reaching.push_back(i);
  }
  cases.push_back(of_cost(19'999, "normal", "none", {came_to, came_to}));
  reaching.push_back(14);
  const std::vector<size_t> none, chosen = CaseChoice{cases, reaching, none, {"m", 0}}.to_check();
  ASSERT_EQ(chosen.size(), 11u);
  EXPECT_EQ(chosen.back(), 10u) << "the first that comes to the second instruction; the others add nothing";
}

}  // namespace
}  // namespace assay
