// Mutants there are, and the order in which they are drawn.
#include "src/campaign/mutate/population.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernels/mutant.h"
#include "tests/mutate/subject.h"

namespace assay {
namespace {

const Population& population() {
  static const Population made = [] {
    std::vector<CleanCase> cases;
    cases.push_back(make_clean_case(small_case(), subject(), one_thread(), 0));
    return Population(cases, 1);
  }();
  return made;
}

std::string key(const PossibleMutant& m) {
  const MutatedModule& module = population().modules()[static_cast<size_t>(m.module)];
  return mutant_id(module.name, module.program->name(m.mutation));
}

TEST(Population, HoldsTheLaunchedEntryOnly) {
  ASSERT_EQ(population().modules().size(), 1u);
  std::set<int32_t> functions;
  for (const MutationPlace& place : population().places())
    for (const PossibleMutant& m : place.mutants) functions.insert(m.mutation.function);
  EXPECT_EQ(functions.size(), 1u);
  EXPECT_GT(population().possible(), 500);
  EXPECT_LE(population().instructions_reached(), population().instructions());
}

TEST(Population, SequenceTakesEveryPlaceOnceBeforeAnyTwice) {
  const std::vector<PossibleMutant> sequence = population().sequence(7);
  ASSERT_EQ(static_cast<int64_t>(sequence.size()), population().possible());
  std::map<std::string, size_t> place_of;
  for (size_t i = 0; i < population().places().size(); ++i)
    for (const PossibleMutant& m : population().places()[i].mutants) place_of[key(m)] = i;
  std::set<size_t> first;
  std::set<std::string> all;
  for (size_t i = 0; i < sequence.size(); ++i) {
    EXPECT_TRUE(all.insert(key(sequence[i])).second);
    const bool again = !first.insert(place_of.at(key(sequence[i]))).second;
    EXPECT_EQ(again, i >= population().places().size());
  }
}

TEST(Population, SequenceIsDecidedByTheSeed) {
  EXPECT_EQ(key(population().sequence(7)[0]) + key(population().sequence(7)[99]),
            key(population().sequence(7)[0]) + key(population().sequence(7)[99]));
  EXPECT_NE(key(population().sequence(7)[0]) + key(population().sequence(7)[99]),
            key(population().sequence(8)[0]) + key(population().sequence(8)[99]));
}

}  // namespace
}  // namespace assay
