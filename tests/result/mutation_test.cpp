#include "src/result/mutation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/result/schema_check.h"

namespace assay {
namespace mutation_test {

MutationRun sample() {
  MutationRun run;
  run.kernel = "gla.chunk", run.backend = "vm sm_90", run.seed = 7, run.asked = 6;
  run.set_aside = {"gla.chunk/...: violation/o"};
  for (const auto& [change, outcome] : {std::pair{"drop-guard", MutantOutcome::killed},
                                        {"fma-to-mul", MutantOutcome::killed},
                                        {"fma-to-mul", MutantOutcome::killed},
                                        {"fma-to-mul", MutantOutcome::survived},
                                        {"change-rounding", MutantOutcome::within_bound},
                                        {"drop-guard", MutantOutcome::equivalent}}) {
    Mutant m;
    m.id = "gla+chunk.bf16.fp32+1234+fma-to-mul", m.change = change, m.outcome = outcome;
    m.where = {"kernels/gla/chunk.cu", 12, 1234, "gla_chunk_output"};
    run.mutants.push_back(m);
  }
  return run;
}

TEST(MutationRunResult, CountsEachOutcomeOnce) {
  const MutationRun run = sample();
  EXPECT_EQ(count_of(run, MutantOutcome::killed), 3);
  EXPECT_EQ(count_of(run, MutantOutcome::untried), 0);
  EXPECT_DOUBLE_EQ(score_of(run), 75) << "within-bound and equivalent mutants count on neither side";
  EXPECT_DOUBLE_EQ(score_of(MutationRun{}), 0) << "nothing was shown";
  const std::vector<MutationCount> counts = counts_by_change(run);
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[1].change, "drop-guard");
  EXPECT_EQ(counts[1].killed, 1);
  EXPECT_EQ(counts[1].equivalent, 1);
  EXPECT_EQ(counts[2].survived, 1);
}

TEST(MutationRunResult, CountsEachOutcomeByItsChange) {
  int64_t killed = 0;
  for (const MutationCount& count : counts_by_change(sample()))
    if (count.change == "fma-to-mul") killed = count.killed;
  EXPECT_EQ(killed, 2);
}

TEST(MutationRunResult, FitsTheSchema) {
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/reports/schema.json");
  const nlohmann::json schema = nlohmann::json::parse(file);
  nlohmann::json json = to_json(sample());
  const SchemaCheck check(schema);
  EXPECT_EQ(check.errors(json), std::vector<std::string>{});
  json["mutants"][0]["outcome"] = "escaped";
  EXPECT_FALSE(check.errors(json).empty());
}

}  // namespace mutation_test
}  // namespace assay
