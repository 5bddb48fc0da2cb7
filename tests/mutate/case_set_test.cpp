// The cases that mutants are tried on.
#include "src/campaign/mutate/case_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "src/case/resolved_case.h"
#include "src/verification/verify/acceptance.h"

namespace assay {
namespace {

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels()) names.push_back(kernel.name);
  return names;
}

class MutationCasesOf : public testing::TestWithParam<std::string> {};

TEST_P(MutationCasesOf, AKernelAreAcceptedAndShowEachFormatAndDirection) {
  const Kernel& kernel = find_kernel(GetParam());
  std::vector<Direction> directions = directions_of(kernel);
  std::erase(directions, Direction::both);
  std::set<Dtype> dtypes, gates;
  std::set<Direction> seen;
  bool partial = false, state = false;
  for (const MutationCase& m : mutation_cases(kernel, directions)) {
    EXPECT_NO_THROW(accepted(m.case_, kernel)) << token_of(m.case_);
    dtypes.insert(m.case_.dtype), gates.insert(m.case_.gate_dtype), seen.insert(m.case_.direction);
    partial |= m.case_.T % 64 != 0 && m.case_.T > 64;
    state |= m.case_.initial_state;
  }
  EXPECT_EQ(dtypes.size(), kernel.limits.dtypes.size());
  EXPECT_GE(gates.size(), kernel.limits.gate_dtypes.size());
  EXPECT_EQ(seen.size(), directions.size());
  EXPECT_TRUE(partial && state);
}
INSTANTIATE_TEST_SUITE_P(EachKernel, MutationCasesOf, testing::ValuesIn(kernel_names()));

/// A pointer may be used where two inputs are absent and a third is not.
TEST(CaseSet, EverySetOfOptionalInputsIsLeftOut) {
  const std::vector<std::set<std::string>> sets = absent_inputs(find_operator("gated_delta_rule"));
  EXPECT_EQ(sets.size(), 7U);
  for (const std::set<std::string>& one :
       {std::set<std::string>{"g"}, {"beta", "g"}, {"beta", "beta_v"}, {"beta", "beta_v", "g"}})
    EXPECT_EQ(std::count(sets.begin(), sets.end(), one), 1) << *one.begin();
}

TEST(MutationCases, AreExactWhereTheOperatorHasExactValues) {
  const auto exact = [](const char* name) {
    const auto cases = mutation_cases(find_kernel(name), {Direction::forward});
    return std::count_if(cases.begin(), cases.end(),
                         [](const MutationCase& m) { return m.case_.values == "exact"; });
  };
  EXPECT_GE(exact("gla.chunk"), 12);
  EXPECT_EQ(exact("gate_softplus.fused"), 0);
}

TEST(MutationCases, EndEverywhereInASegmentWithStatesOfNegativeZeros) {
  std::set<int64_t> places;
  bool behind = false;
  for (const MutationCase& m : mutation_cases(find_kernel("gla.fused_recurrent"), {Direction::backward})) {
    if (m.case_.values != "negative-zeros") continue;
    const auto& ends = m.case_.cu_seqlens;
    for (size_t i = 1; i < ends.size(); ++i) {
      places.insert((ends[i] - ends[i - 1]) % 8);
      behind |= ends[i] - ends[i - 1] > 8;
    }
    const TensorMap inputs = draw_inputs(accepted(m.case_, find_kernel("gla.fused_recurrent")));
    for (const char* name : {"q", "k", "initial_state", "dfinal_state"})
      EXPECT_TRUE(inputs.at(name).value(0) == 0 && std::signbit(inputs.at(name).value(0))) << name;
    for (const char* name : {"v", "do"}) EXPECT_GT(inputs.at(name).value(0), 0) << name;
  }
  EXPECT_EQ(places, (std::set<int64_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(behind);
}

/// Writes per token are steps of the recurrence, slots are not.
TEST(MutationCases, HaveManySlotsAndFewWrites) {
  for (const MutationCase& m : mutation_cases(find_kernel("gsa.chunk"), {Direction::forward}))
    EXPECT_GE(m.case_.M, 16) << token_of(m.case_);
  for (const MutationCase& m :
       mutation_cases(find_kernel("gated_delta_product.fused_recurrent"), {Direction::forward}))
    EXPECT_EQ(m.case_.M, 2) << token_of(m.case_);
}

TEST(MutationCases, OfOneFormatHaveSiblingsInTheOthers) {
  const Kernel& kernel = find_kernel("gla.chunk");
  const MutationCase own = drawn_cases(kernel, {Direction::forward}, 1, 1, 5).at(0);
  std::set<std::pair<Dtype, Dtype>> formats{{own.case_.dtype, own.case_.gate_dtype}};
  for (const MutationCase& other : in_other_formats(own, kernel)) {
    EXPECT_EQ(other.row, own.row);
    EXPECT_EQ(other.case_.T, own.case_.T);
    formats.emplace(other.case_.dtype, other.case_.gate_dtype);
  }
  EXPECT_EQ(formats.size(), format_pairs(kernel).size());
}

TEST(MutationCases, OfAbsentInputsReachTheirModulesInEveryFormat) {
  const Kernel& kernel = find_kernel("simple_gla.chunk");
  std::set<std::pair<std::set<std::string>, Dtype>> seen;
  for (const MutationCase& m : absence_cases(kernel, {Direction::forward, Direction::backward}, 7)) {
    EXPECT_GE(m.row, 7u);
    EXPECT_FALSE(m.case_.without.empty());
    seen.emplace(m.case_.without, m.case_.dtype);
  }
  for (const std::set<std::string>& without : {std::set<std::string>{"g"}, {"g", "g_gamma"}})
    for (const Dtype dtype : kernel.limits.dtypes) EXPECT_TRUE(seen.contains({without, dtype}));
}

TEST(MutationCases, OfAProgramOfItsOwnAreAllRowsOnce) {
  const auto rows_without = [](const char* name, const std::set<std::string>& without) {
    std::set<size_t> rows;
    for (const MutationCase& m : mutation_cases(find_kernel(name), {Direction::forward}))
      if (m.case_.without == without) rows.insert(m.row);
    return rows.size();
  };
  // Other modules run without g; without beta too, those once more.
  EXPECT_GT(rows_without("gated_delta_rule.fused_recurrent", {"g"}), 40u);
  EXPECT_EQ(rows_without("gated_delta_rule.fused_recurrent", {"beta"}), 1u);
  EXPECT_EQ(rows_without("delta_rule.fused_recurrent", {"beta"}), 1u);
}

TEST(MutationCases, ThatCostMuchAreCandidatesOnly) {
  const Kernel& kernel = find_kernel("simple_gla.parallel");
  const std::vector<Direction> directions{Direction::forward, Direction::backward};
  const auto is_long = [](const MutationCase& m) { return m.case_.T > 1000; };
  const auto always = mutation_cases(kernel, directions), costly = costly_cases(kernel, directions, 9);
  EXPECT_EQ(std::count_if(always.begin(), always.end(), is_long), 0);
  EXPECT_GT(std::count_if(costly.begin(), costly.end(), is_long), 0);
  for (const MutationCase& m : costly) EXPECT_GE(m.row, 9u);
}

TEST(MutationCases, DrawnOnesAreDecidedByTheSeed) {
  const Kernel& kernel = find_kernel("gla.chunk");
  const auto tokens = [&](uint64_t seed) {
    std::vector<std::string> list;
    for (const MutationCase& m : drawn_cases(kernel, {Direction::forward}, 12, seed, 5)) {
      EXPECT_GE(m.row, 5u);
      EXPECT_EQ(m.case_.direction, Direction::forward);
      list.push_back(token_of(m.case_));
    }
    return list;
  };
  EXPECT_EQ(tokens(1), tokens(1));
  EXPECT_NE(tokens(1), tokens(2));
  EXPECT_GE(tokens(1).size(), 8u);
}

/// Of gsa.chunk without a gate, in bf16: the sizes differ, what decides the modules does not.
class SearchedSizes : public testing::Test {
 protected:
  SearchedSizes() {
    like_.case_.kernel = kernel_.name, like_.case_.without = {"g"}, like_.case_.decay = "none";
    like_.case_.T = 3, like_.case_.K = like_.case_.V = like_.case_.M = 16, like_.row = 7;
  }
  std::vector<Case> found(uint64_t seed, const std::function<bool(const Program&)>& wanted) const {
    std::vector<Case> cases;
    for (uint64_t i = 0; i < 120; ++i)
      if (const auto drawn = with_searched_sizes(like_, kernel_, seed, i, wanted)) {
        EXPECT_EQ(drawn->row, 7u);
        cases.push_back(drawn->case_);
      }
    return cases;
  }
  const Kernel& kernel_ = find_kernel("gsa.chunk");
  MutationCase like_;
};

TEST_F(SearchedSizes, AreAcceptedAndEndInEveryWay) {
  const std::vector<Case> cases = found(1, [](const Program&) { return true; });
  ASSERT_GT(cases.size(), 40u);
  bool whole = false, odd = false, beside = false, many = false, few = false, packed = false;
  for (const Case& c : cases) {
    EXPECT_NO_THROW(accepted(c, kernel_)) << token_of(c);
    EXPECT_EQ(c.without, like_.case_.without);
    EXPECT_EQ(c.dtype, like_.case_.dtype);
    whole |= c.K % 8 == 0 && c.V % 8 == 0, odd |= c.V % 8 == 5, beside |= c.V % 8 == 6;
    many |= c.H > 132, few |= c.M < 16, packed |= !c.cu_seqlens.empty();
  }
  EXPECT_TRUE(whole && odd && beside && many && few && packed);
  EXPECT_EQ(cases, found(1, [](const Program&) { return true; }));
  EXPECT_NE(cases, found(2, [](const Program&) { return true; }));
}

TEST_F(SearchedSizes, HoldLongOnesThatHardlyDecay) {
  like_.case_.without.clear();
  const std::vector<Case> cases = found(1, [](const Program&) { return true; });
  int long_ones = 0;
  for (const Case& c : cases) {
    if (c.T <= 256) continue;
    ++long_ones;
    EXPECT_EQ(c.decay, "mild:0.01") << token_of(c);
    EXPECT_LE(std::max(c.K, c.V), 16) << token_of(c);
    EXPECT_TRUE(c.initial_state && c.cu_seqlens.empty()) << token_of(c);
  }
  EXPECT_GT(long_ones, 0);
}

TEST_F(SearchedSizes, LaunchWhatIsWanted) {
  const auto softmax = [](const Program& plan) {
    return std::any_of(plan.launches.begin(), plan.launches.end(),
                       [](const Launch& launch) { return launch.function == "gsa_softmax"; });
  };
  const std::vector<Case> cases = found(1, softmax);
  EXPECT_GT(cases.size(), 5u);
  for (const Case& c : cases) EXPECT_GT(c.M, 64) << token_of(c);
}

}  // namespace
}  // namespace assay
