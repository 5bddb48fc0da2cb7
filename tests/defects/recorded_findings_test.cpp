#include "src/campaign/defects/recorded_findings.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(RecordedFindings, AreRepeatedByTheSameCauseAndBitsAlone) {
  const RecordedFinding stored{"token", "violation/o", "00ff"};
  const TokenReplay same{Verdict::finding, "violation/o", "00ff", Verdict::pass, ""};
  EXPECT_TRUE(stored.repeated_by(same));
  EXPECT_EQ(without_line("nonfinite/o/exp-overflow/kernels/a.cuh:12"),
            "nonfinite/o/exp-overflow/kernels/a.cuh");
  EXPECT_EQ(without_line("violation/o"), "violation/o");
  TokenReplay other = same;
  other.digest = "00fe";
  EXPECT_FALSE(stored.repeated_by(other));
  other = same, other.cause = "violation/dq";
  EXPECT_FALSE(stored.repeated_by(other));
  other = same, other.clean_verdict = Verdict::finding;
  EXPECT_FALSE(stored.repeated_by(other));
}

}  // namespace
}  // namespace assay
