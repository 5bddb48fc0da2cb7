// What a finding's values depend on otherwise than they should, on kernels with known defects.
#include "src/verification/verify/fault_location.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"

namespace assay {
namespace {

Verification located(const std::string& token) {
  VerifyOptions options;
  options.threads = 2, options.twice = false;
  const Case c = parse_token(token);
  const auto backend = make_vm_backend({});
  return verify(c, find_kernel(c.kernel), *backend, options);
}

/// No meaning tells which slots the gradient went to.
TEST(FaultLocation, WhatNoMeaningExplainsIsSaidByItsDependences) {
  const Verification v =
      located("gsa.fused_recurrent@H8/B1/T1/H1/K1/V1/M2/bf16/g-fp32/none/v-powers/s1/backward/dht");
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "formula-differs");
  EXPECT_EQ(v.diagnosis.front().explanation,
            "ds and dg and dhk0: their dependence on dhkt[m] has the weight of dhkt[m+1]");
}

TEST(FaultLocation, OfACauseThatIsNamedTheDependencesAreEvidence) {
  const Verification v = located("hgrn.chunk@H1/B1/T0/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward/h0/dht");
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "gradient-without-final-state-term");
  const std::vector<std::string>& evidence = v.diagnosis.front().evidence;
  EXPECT_TRUE(std::count(evidence.begin(), evidence.end(),
                         "dx and dg and dinitial_state do not depend on dfinal_state"));
}

/// j <= i + 1 for j <= i: the mutant that compares with the other edge is right.
TEST(FaultLocation, ALineThatAChangedInstructionRepairsIsNamedFirst) {
  const Verification v = located("gla.chunk@D8/B1/T2/H1/K1/V1/bf16/g-fp32/none/v-ones/s1");
  ASSERT_FALSE(v.lines.empty());
  EXPECT_TRUE(v.lines.front().at.where.file.ends_with("kernels/channel/chunk_scores.cuh"));
  EXPECT_EQ(v.lines.front().at.where.line, 117);
  EXPECT_TRUE(v.lines.front().reason.ends_with("all elements are right")) << v.lines.front().reason;
}

/// No formula differs: nothing is moved.
TEST(FaultLocation, OfARoundingItSaysNothing) {
  const Verification v =
      located("hgrn.fused_recurrent@P5/B1/T6/H1/K1/V1/bf16/g-fp32/spike:16,90,1/v-ones/s1");
  ASSERT_FALSE(v.diagnosis.empty());
  for (const Diagnosis& d : v.diagnosis)
    for (const std::string& line : d.evidence)
      EXPECT_EQ(line.find("moved in turn"), std::string::npos) << line;
}

}  // namespace
}  // namespace assay
