// What is said of a finding beyond its own values: the checks that nobody asked for, further cases, strong
// decays.
#include "src/verification/verify/explain.h"

#include <gtest/gtest.h>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"

namespace assay {
namespace {

Verification verified(const std::string& token, const Kernel& kernel) {
  VerifyOptions options;
  options.threads = 2, options.twice = false;
  options.origin.nearest_inputs = 0, options.meaning_seconds = 2;
  const auto backend = make_vm_backend({});
  return verify(parse_token(token), kernel, *backend, options);
}

/// Values alone say that a gradient's sum is wrong; that two blocks write the same share is seen under the
/// checks.
TEST(Explain, AWrongValueIsLookedAtUnderTheChecks) {
  const Verification v =
      verified("simple_gla.parallel@R3/B2/T1/H1/K65/V1/bf16/g-fp32/none/v-ones/s1/backward/h0",
               find_kernel("simple_gla.parallel@R3"));
  EXPECT_EQ(v.verdict, Verdict::finding);
  ASSERT_TRUE(v.checks) << "nobody asked for them, but they have a finding to tell";
  EXPECT_FALSE(v.checks->findings.empty());
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "data-race");
}

/// e^88 is finite, and the product with e^-88 loses a term: where decays are stronger the exponential
/// overflows, and its argument names the anchor.
TEST(ExplainCampaign, APositiveExponentInAFiniteRunIsWalkedBackWhereItOverflows) {
  const std::string token =
      "rwkv6.chunk@S2b/B1/T12/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward/w@0,3,0,0=-88";
  Kernel kernel = find_kernel("rwkv6.chunk@S2b");
  for (const bool promised : {false, true}) {
    kernel.exponents_meant_nonpositive = promised;
    const Verification v = verified(token, kernel);
    EXPECT_EQ(v.cause, "violation/dv");
    ASSERT_FALSE(v.diagnosis.empty());
    EXPECT_EQ(v.diagnosis.front().cause == "anchor-row-late", promised) << v.diagnosis.front().cause;
  }
}

TEST(Explain, WhatExplainsAPartOfEveryFurtherCaseIsNotNamedBeforeWhatDiffers) {
  const Verification v =
      verified("short_conv.fused@W18/B1/T1/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward/dht",
               find_kernel("short_conv.fused@W18"));
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "formula-differs");
}

/// Two runs differ; the shorter of them is wrong, and that is what is said.
TEST(ExplainCampaign, WhatAPropertyRanIsNamedByWhatIsWrongInIt) {
  const Kernel kernel = find_kernel("gsa.fused_recurrent@H8");
  const auto backend = make_vm_backend({});
  VerifyOptions options;
  options.threads = 1, options.meaning_seconds = 0.5;
  const Case part =
      parse_token("gsa.fused_recurrent@H8/B1/T2/H1/K4/V4/M16/bf16/g-fp32/logsigmoid/s1/backward/dht");
  for (const bool derived : {false, true}) {
    Verification v;
    v.case_ = part;
    v.case_.T = 40, v.case_.final_state_gradient = false;
    v.properties_failed = {"split-and-resume: split at t = 2"};
    std::vector<DerivedRun> runs;
    if (derived) runs.push_back({part, draw_inputs(part, find_operator("gsa"))});
    explain_properties(kernel, *backend, options, runs, v);
    ASSERT_FALSE(v.diagnosis.empty());
    EXPECT_EQ(v.diagnosis.front().cause, derived ? "formula-differs" : "state-handed-on-differs");
  }
}

}  // namespace
}  // namespace assay
