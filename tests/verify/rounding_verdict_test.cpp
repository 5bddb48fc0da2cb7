// The statistical verdict on kernels: clean ones, and some that round more than they say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/claim.h"
#include "src/base/backend/backend.h"
#include "src/case/decay_profiles.h"
#include "src/verification/verify/verify.h"
#include "tests/verify/scaled_kernel.h"

namespace assay {
namespace rounding_verdict_test {

Verification judged(const std::string& token, const Kernel& kernel) {
  const auto machine = make_vm_backend({});
  VerifyOptions options;
  options.diagnose = false, options.twice = false;
  options.formula_instructions = 0;
  options.rounding_work = 1e9;
  options.power = true;
  return verify(parse_token(token), kernel, *machine, options);
}
Verification judged(const std::string& token) {
  return judged(token, find_kernel(token.substr(0, token.find('/'))));
}

TEST(RoundingVerdictCampaign, CleanKernelsAreExplainedUnderEveryDecay) {
  for (const std::string kernel :
       {"gla.chunk", "simple_gla.chunk", "rwkv6.chunk", "hgrn.chunk", "gsa.chunk", "gsa.fused_recurrent"})
    for (const std::string decay : {"none", "mild", "near-one", "logsigmoid", "strong", "reset", "spike",
                                    "contrast", "extreme", "constant:-0.01"}) {
      const char* const slots = kernel.starts_with("gsa") ? "/M32" : "";
      const std::string token =
          fmt::format("{}/T200/H1/K32/V32{}/bf16/g-fp32/{}/s7/both/h0/dht", kernel, slots, decay);
      const Verification v = judged(token);
      EXPECT_NE(v.verdict, Verdict::finding) << token << " " << v.cause;
      ASSERT_TRUE(v.rounding) << token;
    }
}

/// Squares of what decays leave underflow long before the values do.
TEST(RoundingVerdict, ValuesWhoseSquaresAreNoFloatsRaiseNoAlarm) {
  for (const char* token : {"gla.chunk/T16/H2/K1/V1/bf16/g-fp32/contrast:90,0.001/s1/backward",
                            "gla.chunk/T64/H1/K2/V2/bf16/g-fp32/constant:-20/s2/backward",
                            "simple_gla.chunk/T64/H1/K2/V2/bf16/g-fp32/constant:-35/s3/backward",
                            "gla.chunk/T64/H1/K8/V8/bf16/g-fp32/constant:-12/s4/backward"})
    EXPECT_NE(judged(token).verdict, Verdict::finding) << token << " " << judged(token).cause;
}

/// Between its chunks 10^-36 of a state is left: what samples say of that is no float.
TEST(RoundingVerdict, AStateOfWhichNextToNothingIsLeftRaisesNoAlarm) {
  EXPECT_EQ(judged("rwkv6.chunk/B1/T705/H1/K16/V1/bf16/g-bf16/rows/s99366/scale-1").cause, "");
}

TEST(RoundingVerdict, WithoutDecaysThePredictedErrorIsTheError) {
  const Verification v = judged("gla.chunk/T512/H1/K64/V64/bf16/g-fp32/none/s2/both");
  ASSERT_TRUE(v.rounding);
  for (const RoundingOutput& o : v.rounding->outputs) {
    ASSERT_EQ(o.skipped, "") << o.name;
    if (o.name == "final_state") continue;  // fp32 throughout
    EXPECT_GT(o.all.ratio, 0.9) << o.name;
    EXPECT_LT(o.all.ratio, 1.1) << o.name;
  }
}

TEST(RoundingVerdict, AScaleOffByAThousandthIsUnlikelyWhereTheBoundHolds) {
  const std::string token = "gla.chunk/T512/H1/K64/V64/bf16/g-fp32/none/s2";
  EXPECT_EQ(judged(token).verdict, Verdict::pass);
  const Verification v = judged(token, scaled_kernel("gla.chunk", 1.001f));
  EXPECT_EQ(v.verdict, Verdict::finding);
  EXPECT_EQ(v.cause, "unlikely/o");
  EXPECT_EQ(v.outputs.front().violation, 0);
  EXPECT_NEAR(v.rounding->outputs.front().all.slope, 1.001, 1e-4);
}

TEST(RoundingVerdict, OutputsOfAFileWithAnotherRoundingAreUnlikely) {
  const std::string token = "gla.chunk/T512/H1/K64/V64/bf16/g-fp32/none/s2";
  const auto machine = make_vm_backend({});
  VerifyOptions options;
  options.diagnose = false, options.twice = false, options.formula_instructions = 0;
  options.rounding_work = 1e9;
  const Kernel& kernel = find_kernel("gla.chunk");
  const ResolvedCase c = resolve(parse_token(token), find_operator("gla"));
  const TensorMap inputs = draw_inputs(c);
  Outcome outcome = machine->run(program_of(kernel, c, inputs), inputs);
  options.expected = &outcome.outputs;
  EXPECT_EQ(verify(parse_token(token), kernel, *machine, options).verdict, Verdict::pass);
  // As much again as the roundings of the late tokens make, of either sign.
  Tensor& o = outcome.outputs.at("o");
  for (int64_t i = o.size() / 2; i < o.size(); ++i)
    o.set(i, o.value(i) * (i * 2654435761 % 4096 < 2048 ? 1.004 : 0.996));
  const Verification v = verify(parse_token(token), kernel, *machine, options);
  EXPECT_EQ(v.cause, "expected/o");
  ASSERT_FALSE(v.rounding->expected.empty());
  EXPECT_GT(v.rounding->expected.front().unlikely, 0);
  EXPECT_EQ(v.expected_outputs.front().violation, 0);
}

TEST(RoundingVerdict, InputsOnWhichTheModelFailsAreNotJudgedByIt) {
  for (const std::string values : {"ones", "mirrored", "powers", "exact", "cancelling"}) {
    const Verification v = judged(fmt::format("gla.chunk/T128/H1/K32/V32/bf16/g-fp32/none/v-{}/s2", values));
    ASSERT_TRUE(v.rounding) << values;
    EXPECT_NE(v.rounding->outputs.front().skipped, "") << values;
  }
}

/// Blocks of one token behind whole ones, and alone: what little they say of a state is no alarm.
TEST(RoundingVerdict, CleanBlocksOfOneTokenAreExplained) {
  for (const std::string kernel : {"gla.chunk", "simple_gla.fused_chunk", "rwkv6.chunk", "linear_attn.chunk"})
    for (const std::string sizes : {"T65", "T129", "T1/h0", "T2/h0"})
      for (const std::string decay : {"none", "near-one", "mild"}) {
        if (kernel.starts_with("linear") && decay != "none") continue;
        const size_t slash = sizes.find('/');
        const std::string token =
            fmt::format("{}/{}/H2/K32/V32/bf16/g-fp32/{}/s5{}", kernel, sizes.substr(0, slash), decay,
                        slash < sizes.size() ? sizes.substr(slash) : "");
        const Verification v = judged(token);
        EXPECT_EQ(v.verdict, Verdict::pass) << token << " " << v.cause;
        ASSERT_TRUE(v.rounding) << token;
        EXPECT_EQ(v.rounding->outputs.front().unlikely, 0) << token;
      }
}

/// Row 5: a clean kernel whose errors are large, and what would have been seen of it.
TEST(RoundingVerdictCampaign, ACleanGateGradientOfGsaIsOffByPercentsAndSaysWhatWouldHaveBeenSeen) {
  const Verification v = judged("gsa.chunk/T2048/H1/K64/V64/M64/bf16/g-fp32/none/s1/both");
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause;
  ASSERT_TRUE(v.rounding && v.power);
  for (const RoundingOutput& output : v.rounding->outputs) EXPECT_EQ(output.unlikely, 0) << output.name;
  for (const PowerOutput& output : v.power->outputs) {
    EXPECT_FALSE(output.zeros || output.inconclusive) << output.name;
    EXPECT_LT(output.smallest_late, 0.25) << output.name;
    if (output.name != "dg") continue;
    EXPECT_NEAR(output.error, 0.037, 0.003);
    EXPECT_EQ(output.by, "statistic");
  }
}

/// Row 4 of what once passed: decays in which states older than the chunk before are a tenth of o (spike) to
/// nine tenths of it.
TEST(RoundingVerdictCampaign, ARunningStateInBf16IsSeenInWhatItCarriesFromChunkToChunk) {
  for (const std::string of :
       {"T1024/none", "T1024/late-reset", "T1024/constant:-0.01", "T1024/contrast", "T1024/spike"}) {
    const size_t slash = of.find('/');
    const std::string token =
        fmt::format("/{}/H1/K64/V64/bf16/g-fp32{}/s1", of.substr(0, slash), of.substr(slash));
    EXPECT_EQ(judged("gla.chunk" + token).verdict, Verdict::pass) << token;
    const Verification v = judged("gla.chunk@P9" + token);
    EXPECT_EQ(v.verdict, Verdict::finding) << token;
    ASSERT_TRUE(v.rounding) << token;
    const RoundingPart& worst = v.rounding->outputs.front().worst;
    EXPECT_EQ(v.rounding->outputs.front().name, "o");
    EXPECT_GT(v.rounding->outputs.front().unlikely, 0) << token;
    EXPECT_GT(worst.carried, worst.allowed_carried) << token;
  }
}

TEST(RoundingVerdict, AStateThatIsDeclaredToBeRoundedIsNotJudged) {
  Kernel kernel = find_kernel("gla.chunk@P9");
  kernel.arithmetic = [of = kernel.arithmetic](const ResolvedCase& c) {
    Arithmetic a = of(c);
    a.boundary = (1 + a.boundary) * (1 + 0x1p-8) - 1;
    return a;
  };
  const Verification v = judged("gla.chunk@P9/T256/H1/K32/V32/bf16/g-fp32/none/s1", kernel);
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause;
  ASSERT_TRUE(v.rounding);
  EXPECT_NE(v.rounding->outputs.front().skipped, "");
}

/// Rows 1 and 2: outputs of a file, where the kernel's own are not contradicted.
Verification judged_file(const std::string& token, void (*damage)(TensorMap&)) {
  const auto machine = make_vm_backend({});
  const Kernel& kernel = find_kernel(token.substr(0, token.find('/')));
  const ResolvedCase c = resolve(parse_token(token), find_operator(kernel.operator_name));
  const TensorMap inputs = draw_inputs(c);
  Outcome outcome = machine->run(program_of(kernel, c, inputs), inputs);
  damage(outcome.outputs);
  VerifyOptions options;
  options.diagnose = false, options.twice = false, options.formula_instructions = 0;
  options.rounding_work = 1e10, options.power = true;
  options.expected = &outcome.outputs;
  return verify(parse_token(token), kernel, *machine, options);
}
void scale(Tensor& x, double by, int64_t first = 0) {
  for (int64_t i = first; i < x.size(); ++i) x.set(i, x.value(i) * by);
}

TEST(RoundingVerdict, EachWrongOutputOfGsaInAFileIsNoPass) {
  const std::string token = "gsa.chunk/T64/H1/K64/V64/M64/bf16/g-fp32/logsigmoid/s1/both";
  EXPECT_NE(judged_file(token, [](TensorMap&) {}).verdict, Verdict::finding);
  for (const auto damage :
       {+[](TensorMap& of) { scale(of.at("o"), 1.1); }, +[](TensorMap& of) { scale(of.at("dq"), 1.5); },
        +[](TensorMap& of) { scale(of.at("dk"), 0); }, +[](TensorMap& of) { scale(of.at("ds"), -1); },
        +[](TensorMap& of) { scale(of.at("dg"), -1); }})
    EXPECT_EQ(judged_file(token, damage).verdict, Verdict::finding);
}

TEST(RoundingVerdictCampaign, ALastQuarterOfZerosInAFileIsNoPass) {
  const std::string token = "gla.chunk/T16384/H1/K16/V16/bf16/g-fp32/near-one/s1";
  EXPECT_NE(judged_file(token, [](TensorMap&) {}).verdict, Verdict::finding);
  const auto zeros = [](TensorMap& of) { scale(of.at("o"), 0, of.at("o").size() / 4 * 3); };
  EXPECT_EQ(judged_file(token, zeros).verdict, Verdict::finding);
}

/// Row 3: the gate's gradient is 0 everywhere.
TEST(RoundingVerdict, AGateGradientOfZerosInAFileIsNoPass) {
  const std::string token = "simple_gla.chunk/T512/H1/K64/V64/bf16/g-fp32/near-one/s1/both";
  EXPECT_NE(judged_file(token, [](TensorMap&) {}).verdict, Verdict::finding);
  EXPECT_EQ(judged_file(token, [](TensorMap& of) { scale(of.at("dg"), 0); }).verdict, Verdict::finding);
}

TEST(RoundingVerdictCampaign, TwoPercentOfAnyOutputOfGsaAreUnlikely) {
  for (const std::string format : {"bf16", "fp16"}) {
    const std::string token = "gsa.chunk/T512/H1/K64/V64/M64/" + format + "/g-fp32/mild/s2/both";
    const auto machine = make_vm_backend({});
    const ResolvedCase c = resolve(parse_token(token), find_operator("gsa"));
    const TensorMap inputs = draw_inputs(c);
    Outcome outcome = machine->run(program_of(find_kernel("gsa.chunk"), c, inputs), inputs);
    for (auto& [name, output] : outcome.outputs)
      for (int64_t i = 0; i < output.size(); ++i) output.set(i, output.value(i) * 1.02);
    VerifyOptions options;
    options.diagnose = false, options.twice = false, options.formula_instructions = 0;
    options.rounding_work = 1e10;
    options.expected = &outcome.outputs;
    const Verification v = verify(parse_token(token), find_kernel("gsa.chunk"), *machine, options);
    ASSERT_TRUE(v.rounding);
    for (const RoundingOutput& o : v.rounding->outputs) EXPECT_EQ(o.unlikely, 0) << format << " " << o.name;
    EXPECT_EQ(v.rounding->expected.size(), 8u);
    for (const RoundingOutput& o : v.rounding->expected) EXPECT_GT(o.unlikely, 0) << format << " " << o.name;
  }
}

TEST(RoundingVerdict, WhatZerosWouldPassIsInconclusive) {
  const std::string token = "gsa.chunk/T512/H1/K32/V32/M32/bf16/g-fp32/none/s1/both";
  const auto machine = make_vm_backend({});
  VerifyOptions options;
  options.diagnose = false, options.twice = false, options.power = true, options.formula_instructions = 0;
  const Verification v = verify(parse_token(token), find_kernel("gsa.chunk"), *machine, options);
  ASSERT_TRUE(v.power);
  EXPECT_TRUE(v.power->inconclusive());
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_TRUE(v.cause.starts_with("inconclusive/")) << v.cause;
}

TEST(RoundingVerdict, WhatIsInconclusiveIsDecidedByTheFormulaOfALongerRunThanIsAskedFor) {
  const std::string token = "gsa.chunk/T256/H1/K32/V32/M32/bf16/g-fp32/none/s1/both";
  const auto machine = make_vm_backend({});
  VerifyOptions options;
  options.diagnose = false, options.twice = false, options.power = true;
  options.formula_instructions = options.formula_where_open = 1;
  const Verification v = verify(parse_token(token), find_kernel("gsa.chunk"), *machine, options);
  EXPECT_EQ(v.verdict, Verdict::undecided);
  options.formula_where_open = v.lane_instructions;
  options.formula_instructions = 0;  // not asked at all
  EXPECT_EQ(verify(parse_token(token), find_kernel("gsa.chunk"), *machine, options).verdict,
            Verdict::undecided);
  options.formula_instructions = 1;
  const Verification decided = verify(parse_token(token), find_kernel("gsa.chunk"), *machine, options);
  EXPECT_EQ(decided.verdict, Verdict::pass) << decided.cause;
  EXPECT_EQ(decided.power->outputs.back().by, "formula");
}

}  // namespace rounding_verdict_test
}  // namespace assay
