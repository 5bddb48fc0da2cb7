// The kernels under the checks, with known defects and without, and at sizes that no memory holds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/defect.h"
#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

Verification checked(const std::string& token) {
  const Case c = parse_token(token);
  const auto backend = make_vm_backend({"sm_90", 1, 0});
  VerifyOptions options;
  options.threads = 1;
  options.twice = options.diagnose = false;
  options.checks = {};
  return verify(c, find_kernel(c.kernel), *backend, options);
}

std::string messages(const Verification& v) {
  std::string text =
      std::string(name_of(v.verdict)) + " " + v.cause + (v.trap ? " " + v.trap->message : "") + "\n";
  if (v.checks)
    for (const CheckFinding& finding : v.checks->findings)
      text += std::string(name_of(finding.kind)) + ": " + finding.message + "\n";
  return text;
}

TEST(SomeBlocks, ChecksAreSilentOnTheKernelsAsTheyAre) {
  for (const char* token : {"gla.chunk/B1/T80/H2/K72/V41/bf16/g-fp32/logsigmoid/s1",
                            "gla.chunk/B2/T17/H1/K1/V1/fp16/g-bf16/none/s1",
                            "gla.fused_recurrent/B1/T20/H2/K20/V9/fp32/g-fp32/mild/s1/h0"}) {
    const Verification v = checked(token);
    EXPECT_EQ(v.verdict, Verdict::pass) << token << " " << messages(v);
    ASSERT_TRUE(v.checks);
    EXPECT_EQ(v.checks->ran.size(), vm::check_rows().size());
  }
}

TEST(SomeBlocks, AMissingBarrierIsARaceAtTheStoreAndTheLoad) {
  const Verification v = checked("gla.chunk@R1/B1/T80/H1/K16/V8/bf16/g-fp32/mild/s1");
  ASSERT_EQ(v.verdict, Verdict::finding) << messages(v);
  EXPECT_TRUE(v.cause.starts_with("check/race/kernels/device/operand.cuh")) << v.cause;
  for (const OutputComparison& output : v.outputs) EXPECT_TRUE(output.pass());  // the values show nothing
}

TEST(SomeBlocks, AnElementThatNobodyStoresIsNamed) {
  const Verification v = checked("gla.chunk@U1/B1/T20/H1/K16/V9/bf16/g-fp32/mild/s1");
  ASSERT_TRUE(v.checks);
  ASSERT_EQ(v.checks->findings.size(), 1u) << messages(v);
  EXPECT_EQ(v.checks->findings[0].kind, CheckKind::never_written);
  EXPECT_NE(v.checks->findings[0].message.find("20 of 180 elements of o"), std::string::npos) << messages(v);
  EXPECT_NE(v.checks->findings[0].message.find("from o[b=0,t=0,h=0,v=8]"), std::string::npos) << messages(v);
}

TEST(SomeBlocks, AnOffsetOf32BitsIsFoundBeyond2To31) {
  // 262145 sequences of 64 tokens x 128 channels: q has 2^31 + 8192 elements.
  const std::string sizes = "/B262145/T64/H1/K128/V8/bf16/g-fp32/mild/s1/blocks-last-1..last";
  const Verification bad = checked("gla.chunk@I1" + sizes), good = checked("gla.chunk" + sizes);
  ASSERT_TRUE(bad.checks);
  ASSERT_FALSE(bad.checks->findings.empty()) << messages(bad);
  EXPECT_EQ(bad.checks->findings[0].kind, CheckKind::index_wrap) << messages(bad);
  for (const Defect& defect : defects())
    if (defect.kernel == "gla.chunk" && defect.name == "I1") {
      EXPECT_TRUE(
          defect.line.ends_with(fmt::format("chunk_output.cuh:{}", bad.checks->findings[0].at.where.line)))
          << defect.line << "\n"
          << messages(bad);
    }
  EXPECT_EQ(good.verdict, Verdict::pass) << messages(good);
  EXPECT_NE(good.partial->find("no value is judged"), std::string::npos);
}

TEST(SomeBlocks, AStateOf2To40BytesIsReached) {
  const Verification v =
      checked("gla.fused_recurrent/B1048576/T1/H16/K128/V128/bf16/g-fp32/mild/s1/h0/blocks-0,last");
  EXPECT_EQ(v.verdict, Verdict::pass) << messages(v);
}

TEST(SomeBlocks, OfARunThatIsHeldTheElementsTheyWroteAreJudged) {
  const Verification v = checked("gla.fused_recurrent/B4/T9/H2/K16/V64/fp32/g-fp32/mild/s1/blocks-0,last");
  EXPECT_EQ(v.verdict, Verdict::pass) << messages(v);
  ASSERT_EQ(v.outputs.size(), 2u);
  EXPECT_EQ(v.outputs[0].elements, 2 * 9 * 32);  // two blocks of 32 value channels
  EXPECT_EQ(v.outputs[0].ok, v.outputs[0].elements);
}

}  // namespace
}  // namespace assay
