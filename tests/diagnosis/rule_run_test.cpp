// Delta rules evaluated tile by tile: unchanged, they are the operator; changed, each is named first.
#include "src/verification/diagnosis/meanings/rule_run.h"

#include <cmath>

#include "tests/diagnosis/named_first.h"

namespace assay {
namespace rule_run_test {

using test::first_cause, test::predicted;

const char* const kHeads = "gated_delta_rule.fused_recurrent/B1/T21/H1/HV2/K4/V2/fp32/g-fp32/mild:0.5/s3/h0";
const char* const kChannels = "kda.fused_recurrent/B1/T21/H2/K4/V2/fp32/g-fp32/mild:0.5/s4/h0";
const char* const kBackwards =
    "kda.fused_recurrent/B1/T21/H1/HV2/K4/V2/fp32/g-fp32/mild:0.5/s5/h0/backward/dht";
const char* const kGeneral = "rwkv7.fused_recurrent/B1/T21/H2/K4/V2/fp32/g-fp32/mild:0.5/s7/h0";
const char* const kGeneralBackwards =
    "rwkv7.fused_recurrent/B1/T21/H1/K4/V2/fp32/g-fp32/mild:0.5/s8/h0/backward/dht";
const char* const kUngated = "delta_rule.fused_recurrent/B2/T20/H2/K4/V2/fp32/none/s6/h0/both/dht";

TEST(RuleRun, UnchangedIsTheOperatorInTilesOfAnySize) {
  for (const char* token : {kHeads, kChannels, kBackwards, kUngated, kGeneral, kGeneralBackwards}) {
    test::MutatedRun scene(parse_token(token));
    const FailingRun run = scene.run();
    for (const int64_t tile : {1, 5, 16, 64}) {
      RuleChange change;
      change.tile = tile;
      const auto p = evaluate_rule(run, change);
      ASSERT_TRUE(p);
      for (const auto& [name, out] : *p)
        for (size_t i = 0; i < out.mid.size(); ++i)
          EXPECT_LE(std::fabs(out.mid[i] - run.expected(name)->mid[i]), 1e-12 * (1 + std::fabs(out.mid[i])))
              << token << " " << name << " " << i;
      EXPECT_GE(p->size(), run.backward ? 4 : 2) << token;
    }
  }
}

/// A meaning's variant, given as what the kernel computed.
struct Row {
  const char *token, *cause, *variant;
};
const Row kRows[] = {
    {kHeads, "rate-missing", "beta taken as 1"},
    {kHeads, "rate-missing", "v is written without beta"},
    {kChannels, "rate-squared", "what is read is taken away times beta squared"},
    {kHeads, "removal-missing", "nothing is taken away"},
    {kChannels, "removal-undecayed", "what is taken away is read before the token's decay"},
    {kHeads, "solve-skipped", "updates are not solved for in tiles of 16"},
    {kChannels, "solve-transposed", "the inverse enters transposed in tiles of 16"},
    {kHeads, "solve-off-by-one", "the token before is not solved for in tiles of 16"},
    {kChannels, "solve-off-by-one", "a token's own update is solved for too in tiles of 8"},
    {kHeads, "solve-cut-short", "the inverse is a series of 4 terms in tiles of 16"},
    {kChannels, "solve-decay-shifted", "keys are solved for without the later token's decay in tiles of 16"},
    {kHeads, "solve-decay-shifted", "keys are solved for with the earlier token's decay too in tiles of 16"},
    {kHeads, "update-lost-at-tile-edges", "the last token's update does not go on in tiles of 16"},
    {kBackwards, "gradient-without-solve", "dk and dbeta lack what passes through the matrix of tiles of 16"},
    {kBackwards, "solve-transposed", "the inverse enters transposed in tiles of 16, backwards alone"},
    {kGeneral, "solve-skipped", "updates are not solved for in tiles of 16"},
    {kGeneral, "solve-transposed", "the inverse enters transposed in tiles of 16"},
    {kGeneral, "solve-off-by-one", "the token before is not solved for in tiles of 16"},
    {kGeneral, "solve-decay-shifted", "keys are solved for with the later token's decay in tiles of 16"},
    {kGeneral, "update-lost-at-tile-edges", "the last token's update does not go on in tiles of 16"},
    {kGeneralBackwards, "gradient-without-solve",
     "da and db lack what passes through the matrix of tiles of 16"},
    {kGeneralBackwards, "solve-transposed", "the inverse enters transposed in tiles of 16, backwards alone"},
    {kHeads, "operand-of-another-head", "beta of another head, 0 for all"},
    {kHeads, "operand-shifted-one-token", "beta of the token before"},
};

TEST(RuleRun, EachChangeIsNamedFirst) {
  for (const Row& row : kRows) {
    test::MutatedRun scene(parse_token(row.token));
    const auto p = predicted(scene.run(), row.cause, row.variant);
    ASSERT_TRUE(p) << row.variant;
    EXPECT_EQ(first_cause(scene, *p), row.cause) << row.token << ": " << row.variant;
  }
}

}  // namespace rule_run_test
}  // namespace assay
