// Whole mutation runs.
#include "src/campaign/mutate/mutate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/base/numerics/bad_input.h"
#include "tests/mutate/subject.h"

namespace assay {
namespace {

MutationRun run(const Kernel& kernel, int64_t mutants, uint64_t seed, int jobs) {
  MutateOptions options;
  options.mutants = mutants;
  options.seed = seed;
  options.jobs = jobs;
  options.drawn = 12;
  options.directions = {Direction::forward};
  return mutate(kernel, options, [](const MutationProgress&) {});
}

nlohmann::json without_seconds(const MutationRun& run) {
  nlohmann::json json = to_json(run);
  json.erase("seconds");
  return json;
}

TEST(Mutate, IsDecidedByTheSeedWhateverTheJobs) {
  const MutationRun one = run(subject(), 45, 3, 1);
  EXPECT_EQ(without_seconds(one), without_seconds(run(subject(), 45, 3, 3)));
  EXPECT_EQ(one.mutants.size(), 45u);
  EXPECT_EQ(count_of(one, MutantOutcome::killed) + count_of(one, MutantOutcome::within_bound) +
                count_of(one, MutantOutcome::equivalent) + count_of(one, MutantOutcome::survived),
            45);
  EXPECT_GT(count_of(one, MutantOutcome::killed), count_of(one, MutantOutcome::survived));
  for (const Mutant& m : one.mutants) {
    EXPECT_TRUE(m.outcome == MutantOutcome::within_bound || !m.reason.empty()) << m.id;
    EXPECT_TRUE(m.outcome != MutantOutcome::within_bound || !m.token.empty()) << m.id;
  }
}

TEST(Mutate, KilledAnywhereItGoesOnToTheSameResult) {
  const auto path =
      std::filesystem::temp_directory_path() / ("assay_mutate_test_" + std::to_string(::getpid()));
  const auto options = [&](const std::filesystem::path& journal) {
    MutateOptions o;
    o.mutants = 45, o.seed = 3, o.jobs = 2, o.drawn = 12;
    o.directions = {Direction::forward};
    o.journal = journal;
    return o;
  };
  std::filesystem::remove(path);
  const auto ending_at = [](int64_t mutants) {  // what a killed run leaves is what one leaves that throws
    return [mutants](const MutationProgress& p) {
      if (p.doing == "mutants" && p.done == mutants) throw std::runtime_error("killed");
    };
  };
  for (const int64_t at : {13, 42})
    EXPECT_THROW(mutate(narrow_subject(), options(path), ending_at(at)), std::runtime_error);
  int64_t told = 0;
  const MutationRun again = mutate(narrow_subject(), options(path),
                                   [&](const MutationProgress& p) { told += p.doing == "mutants"; });
  EXPECT_GE(told, 45);
  EXPECT_EQ(without_seconds(again), without_seconds(run(narrow_subject(), 45, 3, 1)));
  MutateOptions other = options(path);
  other.seed = 4;
  EXPECT_THROW(mutate(narrow_subject(), other, [](const MutationProgress&) {}), BadInput);
  std::filesystem::remove(path);
}

TEST(Mutate, TriesThoseOfAnEarlierRunAgain) {
  const MutationRun one = run(narrow_subject(), 45, 3, 2);
  MutateOptions options;
  options.mutants = 1;  // as many as are named, whatever is asked for
  options.seed = 3, options.jobs = 2, options.drawn = 12;
  options.directions = {Direction::forward};
  for (const Mutant& m : {one.mutants[2], one.mutants[30]}) options.again.emplace(m.id, m.original);
  const auto again = [&] { return mutate(narrow_subject(), options, [](const MutationProgress&) {}); };
  const MutationRun two = again();
  ASSERT_EQ(two.mutants.size(), 2u);
  EXPECT_EQ(two.asked, 2);
  for (const Mutant& m : two.mutants) {
    const auto same = std::find_if(one.mutants.begin(), one.mutants.end(),
                                   [&](const Mutant& other) { return other.id == m.id; });
    ASSERT_NE(same, one.mutants.end()) << m.id;
    EXPECT_EQ(same->outcome, m.outcome);
  }
  options.again.begin()->second = "ret;";
  EXPECT_THROW(again(), BadInput) << "another instruction stands there";
  options.again = {{"hgrn+no_such+1+zero-result", "ret;"}};
  EXPECT_THROW(again(), BadInput);
}

TEST(Mutate, RefusesADirectionThatTheKernelLacks) {
  MutateOptions options;
  options.directions = {Direction::backward};
  Kernel forward_only = subject();
  forward_only.adjoint_arithmetic = nullptr;
  EXPECT_THROW(mutate(forward_only, options, [](const MutationProgress&) {}), BadInput);
}

TEST(Mutate, EndsWhenItIsInterrupted) {
  MutateOptions options;
  const std::atomic<int> signal{2};
  options.interrupted = &signal;
  options.directions = {Direction::forward};
  options.drawn = 1;
  EXPECT_TRUE(mutate(subject(), options, [](const MutationProgress&) {}).mutants.empty());
}

}  // namespace
}  // namespace assay
