#include "src/result/merged.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/result/fuzz_run.h"
#include "src/result/mutation.h"

namespace assay {
namespace merged_test {

using nlohmann::json;

Verification finding(const std::string& kernel, const std::string& cause, uint64_t seed) {
  Verification v;
  v.kernel = v.case_.kernel = kernel;
  v.case_.seed = seed;
  v.token = token_of(v.case_);
  v.verdict = Verdict::finding;
  v.cause = cause;
  return v;
}

/// Shard `number`: so many cases, and what it found.
FuzzRun part(int64_t number) {
  FuzzRun run;
  run.kernels = {"gla.chunk", "gsa.chunk"}, run.backend = "vm sm_90", run.seed = 5;
  run.cases = 10 * number, run.passed = 10 * number - 3, run.undecided = 1, run.domain = 1;
  run.seconds = static_cast<double>(number);
  run.findings = {finding("gla.chunk", "violation/o", static_cast<uint64_t>(number)),
                  finding("gsa.chunk", number == 1 ? "trap" : "violation/o", 9)};
  run.properties = {{"causality", number, 0}, {number == 1 ? "formula" : "packed", 2, 1}};
  run.coverage = {{"dtype", "bf16", number}};
  run.tightness = {{"gla.chunk", "o", "bf16", "none", "T <= 1024", number, 0.5 / static_cast<double>(number),
                    0.25, 0.125, 1}};
  run.reached = {{"gla.chunk", "branch sides", 3 + number, 8}};
  run.baseline = BaselineReport{"before.json", {{"gla.chunk", "violation/dq", "t", "not rerun"}}};
  if (number == 1) run.baseline->gone.push_back({"gla.chunk", "violation/o", "t", "not rerun"});
  return run;
}

std::string refusal(const json& first, const json& second) {
  try {
    merged({{"one.json", &first}, {"two.json", &second}});
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Merged, FuzzRunsAreSummedAndFindingsOfOneKernelAndCauseAreOne) {
  const json first = to_json(part(1)), second = to_json(part(2));
  const FuzzRun all = fuzz_run_from_json(merged({{"one.json", &first}, {"two.json", &second}}));
  EXPECT_EQ(all.cases, 30);
  EXPECT_EQ(all.passed, 24);
  EXPECT_EQ(all.undecided, 2);
  EXPECT_EQ(all.domain, 2);
  EXPECT_EQ(all.seconds, 2);
  ASSERT_EQ(all.findings.size(), 3u);
  EXPECT_EQ(all.findings[0].token, part(1).findings[0].token) << "the first shard's";
  EXPECT_EQ(all.findings[2].cause, "violation/o");
  EXPECT_EQ(all.findings[2].kernel, "gsa.chunk");
  ASSERT_EQ(all.properties.size(), 3u);
  EXPECT_EQ(all.properties[0].checked, 3);
  ASSERT_EQ(all.coverage.size(), 1u);
  EXPECT_EQ(all.coverage[0].cases, 3);
  EXPECT_EQ(all.tightness[0].cases, 3);
  EXPECT_EQ(all.tightness[0].max_ratio, 0.5);
  EXPECT_EQ(all.tightness[0].undecided, 2);
  EXPECT_EQ(all.reached[0].reached, 5) << "what two shards reached may be the same";
  ASSERT_EQ(all.baseline->gone.size(), 1u) << "what one shard found again is not gone";
  EXPECT_EQ(all.baseline->gone[0].cause, "violation/dq");
}

TEST(Merged, PartsOfAnotherCampaignAreRefused) {
  const json first = to_json(part(1));
  FuzzRun other = part(2);
  other.seed = 6;
  EXPECT_NE(refusal(first, to_json(other)).find("two.json: another seed"), std::string::npos);
  other = part(2), other.kernels = {"gla.chunk"};
  EXPECT_NE(refusal(first, to_json(other)).find("another list of kernels"), std::string::npos);
  other = part(2), other.backend = "vm sm_80";
  EXPECT_NE(refusal(first, to_json(other)).find("another backend"), std::string::npos);
  EXPECT_NE(refusal(first, to_json(MutationRun{})).find("of kind 'mutation'"), std::string::npos);
  EXPECT_NE(
      refusal(to_json(part(1).findings[0]), to_json(part(1).findings[0])).find("of kind 'verification'"),
      std::string::npos);
}

MutationRun mutants(int64_t number) {
  MutationRun run;
  run.kernel = "gla.chunk", run.backend = "vm sm_90", run.seed = 7, run.possible = 90, run.asked = 2;
  for (const auto outcome : {MutantOutcome::killed, MutantOutcome::survived}) {
    Mutant m;
    m.id = std::to_string(10 * number + static_cast<int64_t>(outcome)), m.outcome = outcome;
    run.mutants.push_back(m);
  }
  return run;
}

TEST(Merged, MutantsOfAllShardsAreThereOnce) {
  const json first = to_json(mutants(1)), second = to_json(mutants(2));
  const json all = merged({{"one.json", &first}, {"two.json", &second}});
  EXPECT_EQ(all.at("asked"), 4);
  EXPECT_EQ(all.at("killed"), 2);
  EXPECT_EQ(all.at("survived"), 2);
  EXPECT_EQ(all.at("mutants").size(), 4u);
  EXPECT_EQ(refusal(first, first), "two.json: mutant 10 is in one.json too: merge each shard once");
}

TEST(Merged, TrialsOfAllDefectsAreThereOnce) {
  const json first = {
      {"kind", "defects"}, {"seed", 1}, {"time_s", 60}, {"trials", {{{"defect", "gla.chunk@S1"}}}}};
  json second = first;
  EXPECT_NE(refusal(first, second).find("gla.chunk@S1 is in one.json too"), std::string::npos);
  second["trials"][0]["defect"] = "gla.chunk@S2";
  EXPECT_EQ(merged({{"one.json", &first}, {"two.json", &second}}).at("trials").size(), 2u);
  second["seed"] = 2;
  EXPECT_NE(refusal(first, second).find("another seed"), std::string::npos);
}

}  // namespace merged_test
}  // namespace assay
