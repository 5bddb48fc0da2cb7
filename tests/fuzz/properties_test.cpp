#include "fuzz/properties.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/numerics/bad_input.h"
#include "src/verification/verify/verify.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace {

struct Twin {
  const char* property;
  const char* fault;  ///< of the subject: bits change, no bound is left
  const char* token;  ///< a case in which the property sees it
};

constexpr Twin kTwins[] = {
    {"within-bound", "term dropped", "gla.subject/B1/T40/H1/K4/V3/fp32/g-fp32/mild/s3"},
    {"same-bits-twice", "other bits each run", "gla.subject/B1/T9/H1/K4/V3/fp32/g-fp32/mild/s3"},
    {"causality", "sees the future", "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s6"},
    {"split-and-resume", "length matters", "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30"},
    {"causality", "gradient of the past sees the future",
     "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s6/backward/dht"},
    {"causality", "gradients out of nothing", "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s6/both"},
    {"split-and-resume", "length matters to gradients",
     "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30/backward/h0/dht"},
    {"absent-equals-zero-cotangent", "absent cotangent differs",
     "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3/backward"},
    {"packed-equals-separate", "packing matters",
     "gla.subject/B1/T50/H1/K4/V3/cu0,11,11,50/fp32/g-fp32/mild/s3"},
    {"packed-equals-separate", "packing matters", "gla.subject/B2/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
    {"absent-equals-zero-gate", "absent gate differs",
     "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/none/s3/no-g"},
    {"absent-equals-zero-gate", "absent gate differs", "gla.subject/B1/T20/H1/K4/V3/fp32/g-bf16/mild/s3/h0"},
    {"absent-equals-zero-state", "absent state differs", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
    {"inputs-unchanged", "state updated in place", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3/h0"},
    {"memory-recycled", "leftovers show", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
    {"memory-recycled", "leftovers show", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s4"},
    {"neighbours-poisoned", "a neighbour's NaN shows", "gla.subject/B1/T20/H3/K4/V3/fp32/g-fp32/mild/s3"},
    {"neighbours-poisoned", "a neighbour's NaN shows", "gla.subject/B2/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
    {"neighbours-poisoned", "a neighbour's NaN shows",
     "gla.subject/B1/T50/H1/K4/V3/cu0,11,11,50/fp32/g-fp32/mild/s3"},
    {"heads-permute", "first head differs", "gla.subject/B2/T20/H3/K4/V3/fp32/g-fp32/mild/s3/h0"},
    {"strided-equals-dense", "views differ",
     "gla.subject/B1/T20/H2/K4/V3/fp32/g-fp32/mild/s3/l-q=heads-first"},
    {"power-of-two-scale", "scale matters", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3/scale-0.5"},
};

Verification judged(const std::string& token, Backend& backend) {
  const Kernel kernel = test::subject_kernel();
  VerifyOptions options;
  options.threads = 1;
  options.twice = false;
  Verification v = verify(parse_token(token), kernel, backend, options);
  judge_properties(v, kernel, backend);
  return v;
}

bool names(const Verification& v, const std::string& property) {
  return std::any_of(v.properties_failed.begin(), v.properties_failed.end(),
                     [&](const std::string& line) { return line.rfind(property + ":", 0) == 0; });
}

TEST(Properties, EachSeesItsOwnFaultAndIsSilentWithoutIt) {
  for (const Twin& twin : kTwins) {
    test::SubjectBackend broken(twin.fault), sound;
    const Verification bad = judged(twin.token, broken), good = judged(twin.token, sound);
    EXPECT_TRUE(names(bad, twin.property)) << twin.property << " / " << twin.fault << " / " << twin.token;
    EXPECT_EQ(bad.verdict, Verdict::finding) << twin.property;
    EXPECT_EQ(good.verdict, Verdict::pass)
        << (good.properties_failed.empty() ? good.cause : good.properties_failed[0]);
  }
}

TEST(Properties, EveryRowHasATwin) {
  for (const Property& property : properties()) {
    if (property.name == "exponents-nonpositive" || property.name == "same-bits-on-peer" ||
        property.name == "formula" || property.name == "declared-roundings" || property.share == kByCost)
      continue;  // they need a machine that reports exponents, a second engine, PTX, or a format that rounds
    EXPECT_TRUE(std::any_of(std::begin(kTwins), std::end(kTwins), [&](const Twin& twin) {
      return twin.property == property.name;
    })) << property.name;
  }
}

TEST(Properties, APositiveExponentIsSeenOnlyWhereTheKernelPromisesNone) {
  Verification v;
  v.case_ = parse_token("gla.subject/B1/T4/H1/K4/V3/fp32/g-fp32/mild/s3");
  v.verdict = Verdict::pass;
  v.exponents = {{{"chunk.cu", 12, 90, "f"}, "ex2.approx.ftz.f32", -4, 0.25, 10, 0}};
  test::SubjectBackend backend;
  Kernel kernel = test::subject_kernel();
  const std::vector<const Property*> row = {&find_property("exponents-nonpositive")};
  EXPECT_TRUE(check_properties(v, kernel, backend, row).empty());
  kernel.exponents_nonpositive = true;
  ASSERT_EQ(check_properties(v, kernel, backend, row).size(), 1U);
  EXPECT_NE(check_properties(v, kernel, backend, row)[0].failure->find("chunk.cu:12"), std::string::npos);
  v.exponents[0].max = 0;
  EXPECT_FALSE(check_properties(v, kernel, backend, row)[0].failure.has_value());
}

TEST(Properties, BitsOfASecondEngineAreJudgedOnlyWhereThereIsOne) {
  Verification v;
  v.case_ = parse_token("gla.subject/B1/T4/H1/K4/V3/fp32/g-fp32/mild/s3");
  test::SubjectBackend backend;
  const std::vector<const Property*> row = {&find_property("same-bits-on-peer")};
  EXPECT_TRUE(check_properties(v, test::subject_kernel(), backend, row).empty());
  v.bits_differ = 0;
  ASSERT_EQ(check_properties(v, test::subject_kernel(), backend, row).size(), 1U);
  EXPECT_FALSE(check_properties(v, test::subject_kernel(), backend, row)[0].failure.has_value());
  v.bits_differ = 7;
  EXPECT_EQ(check_properties(v, test::subject_kernel(), backend, row)[0].failure, "7 elements differ");
}

/// One thread, that stores 1 into final_state[0] after `body`.
Kernel kernel_in_ptx(const std::string& body) {
  const std::string text =
      ".version 7.8\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 left[16];\n.shared .align 4 .b8 "
      "right[16];\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n"
      "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r0, 1;\n" +
      body + "\nst.global.b32 [%rd1], %r0; ret;\n}\n";
  Kernel kernel = test::subject_kernel();
  kernel.plan = [text](const ResolvedCase&, const TensorMap&) {
    Program plan;
    plan.name = "k";
    plan.modules.push_back({"m", "k.ptx", std::make_shared<std::string>(text)});
    plan.outputs.push_back({"final_state", Dtype::fp32, {{"N", 1}}});
    Launch launch{.module = "m", .function = "k"};
    launch.block = {64, 1, 1};
    launch.arguments = {PointerArgument{"final_state", 0}};
    plan.launches.push_back(launch);
    return plan;
  };
  return kernel;
}

TEST(Properties, OfTheCheckingMachineSeeTheirOwnFaultOnly) {
  // All threads store the same value: each body leaves one thread, or orders them.
  const std::string alone = "setp.ne.u32 %p1, %r1, 0; @%p1 ret;\n";
  const std::pair<const char*, std::string> twins[] = {
      {"copies-awaited", alone + "cp.async.ca.shared.global [left], [%rd1], 4; cp.async.commit_group; "
                                 "st.shared.b32 [left], %r1; cp.async.wait_all;"},
      {"no-races", ""},
      {"reads-written-values", alone + "ld.shared.b32 %r0, [left];"},
      {"stays-in-variables", alone + "st.shared.b32 [left+16], %r0;"},
      {"no-index-wrap", alone + "mov.u32 %r2, 65536; mul.lo.s32 %r3, %r2, %r2; mul.wide.s32 %rd2, %r3, 4; "
                                "add.s64 %rd1, %rd1, %rd2;"},
  };
  Verification v;
  v.case_ = parse_token("gla.subject/B1/T4/H1/K4/V3/fp32/g-fp32/mild/s3");
  v.verdict = Verdict::pass;
  test::SubjectBackend backend;
  for (const Property& property : properties()) {
    if (property.share != kByCost) continue;
    bool seen = false;
    for (const auto& [name, body] : twins) {
      const auto outcomes = check_properties(v, kernel_in_ptx(body), backend, {&property});
      ASSERT_EQ(outcomes.size(), 1U) << property.name;
      EXPECT_EQ(outcomes[0].failure.has_value(), property.name == name)
          << property.name << ", " << body << ": " << outcomes[0].failure.value_or("");
      seen |= property.name == name;
    }
    EXPECT_TRUE(seen) << property.name << " has no twin";
    EXPECT_FALSE(check_properties(v, kernel_in_ptx(alone), backend, {&property})[0].failure.has_value());
  }
}

TEST(Properties, TheFailureNamesTheElementAndBothValues) {
  test::SubjectBackend broken("first head differs");
  const Verification v = judged("gla.subject/B1/T20/H3/K4/V3/fp32/g-fp32/mild/s3/h0", broken);
  for (const std::string& line : v.properties_failed) {
    if (line.rfind("heads-permute:", 0) != 0) continue;
    EXPECT_NE(line.find("o[b=0,t=0,h=0,v=0]"), std::string::npos) << line;
    EXPECT_NE(line.find("(0x"), std::string::npos) << line;
  }
  EXPECT_TRUE(names(v, "heads-permute"));
}

TEST(Properties, AFailureOfAPropertyAloneBecomesTheCause) {
  test::SubjectBackend broken("length matters");
  const Verification v = judged("gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30", broken);
  EXPECT_EQ(v.cause, "property/split-and-resume");
}

TEST(Properties, AKernelThatRefusesTheChangedCaseIsNotJudgedByIt) {
  Kernel kernel = test::subject_kernel();
  const auto plan = kernel.plan;
  kernel.plan = [plan](const ResolvedCase& c, const TensorMap& inputs) {
    if (!c.case_.cu_seqlens.empty()) throw BadInput("no packed sequences");
    return plan(c, inputs);
  };
  test::SubjectBackend backend;
  const Verification v =
      verify(parse_token("gla.subject/B2/T20/H1/K4/V3/fp32/g-fp32/mild/s3"), kernel, backend);
  EXPECT_TRUE(check_properties(v, kernel, backend, {&find_property("packed-equals-separate")}).empty());
}

/// Part of it is another sum, and in another order it has other bits.
TEST(Properties, AGradientThatSequencesShareIsNotComparedBitForBit) {
  BackendOptions machine;
  machine.threads = 1;
  const auto backend = make_vm_backend(machine);
  const Kernel& kernel = find_kernel("simple_gla.fused_recurrent");
  for (const char* token : {"B3/T40/H2/K4/V3/fp32/g-fp32/mild/s3/both/no-g/h0",
                            "B1/T50/H1/K4/V3/cu0,11,11,50/fp32/g-fp32/mild/s3/backward/no-g"}) {
    VerifyOptions options;
    options.threads = 1;
    Verification v = verify(parse_token(kernel.name + "/" + token), kernel, *backend, options);
    judge_properties(v, kernel, *backend);
    EXPECT_EQ(v.verdict, Verdict::pass) << token;
    EXPECT_TRUE(v.properties_failed.empty()) << token << ": " << v.properties_failed.front();
  }
}

TEST(Properties, AnUnknownNameIsBadInputThatListsTheRows) {
  EXPECT_THROW(find_property("cauality"), BadInput);
}

}  // namespace
}  // namespace assay
