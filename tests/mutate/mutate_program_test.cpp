#include "src/campaign/mutate/mutate_program.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace mutate_program_test {

LaunchFile row_norm() {
  const std::filesystem::path root = ASSAY_SOURCE_DIR;
  return {root / "examples/launch/row_norm.json", {root / "tests/data/row_norm.ptx"}};
}
MutationRun mutated(ProgramMutateOptions options) {
  options.drawn = 12, options.machine.arch = "sm_90";
  return mutate_program(row_norm(), options, [](const MutationProgress&) {});
}

TEST(MutateProgram, ItsOwnValuesShowMostChanges) {
  const MutationRun run = mutated({.mutants = 60, .jobs = 2});
  EXPECT_EQ(run.mutants.size(), 60u);
  EXPECT_TRUE(run.set_aside.empty()) << run.set_aside.front();
  EXPECT_GE(count_of(run, MutantOutcome::killed), 40);
  for (const Mutant& m : run.mutants) {
    EXPECT_EQ(m.outcome == MutantOutcome::killed, !m.token.empty()) << m.id;
    EXPECT_EQ(m.outcome == MutantOutcome::untried, m.reason.empty()) << m.id;
  }
}

TEST(MutateProgram, TheSameSeedTriesTheSameWhateverTheThreads) {
  const MutationRun one = mutated({.mutants = 25, .seed = 3, .jobs = 1}),
                    three = mutated({.mutants = 25, .seed = 3, .jobs = 3});
  ASSERT_EQ(one.mutants.size(), three.mutants.size());
  for (size_t i = 0; i < one.mutants.size(); ++i) {
    EXPECT_EQ(one.mutants[i].id, three.mutants[i].id);
    EXPECT_EQ(one.mutants[i].reason, three.mutants[i].reason);
  }
}

TEST(MutateProgram, AToleranceLeavesSmallChangesWithinTheBound) {
  const MutationRun strict = mutated({.mutants = 120, .jobs = 2}),
                    loose = mutated({.mutants = 120, .jobs = 2, .tolerance = 0.1});
  EXPECT_EQ(count_of(strict, MutantOutcome::within_bound), 0);
  EXPECT_GT(count_of(loose, MutantOutcome::within_bound), 0);
  EXPECT_GT(count_of(loose, MutantOutcome::killed), 40);
}

TEST(MutateProgram, ABarrierThatIsLeftOutIsSeenByTheChecks) {
  const MutationRun run = mutated({.mutants = 2000, .jobs = 2});
  const auto barrier = std::find_if(run.mutants.begin(), run.mutants.end(), [](const Mutant& m) {
    return m.original.find("bar.sync") != m.original.npos && m.replacement.empty();
  });
  ASSERT_NE(barrier, run.mutants.end());
  EXPECT_EQ(barrier->outcome, MutantOutcome::killed) << barrier->reason;
}

}  // namespace mutate_program_test
}  // namespace assay
