// Properties that one run of a case shows: each sees its own fault, and is asked only where it can be.
#include "tests/fuzz/property_twins.h"

namespace assay {

std::vector<test::Twin> test::one_run_twins() {
  return {
      {"within-bound", "term dropped", "gla.subject/B1/T40/H1/K4/V3/fp32/g-fp32/mild/s3"},
      {"same-bits-twice", "other bits each run", "gla.subject/B1/T9/H1/K4/V3/fp32/g-fp32/mild/s3"},
      {"inputs-unchanged", "state updated in place", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3/h0"},
      {"memory-recycled", "leftovers show", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
      {"memory-recycled", "leftovers show", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s4"},
  };
}

namespace {

TEST(OneRunProperties, EachSeesItsOwnFaultAndIsSilentWithoutIt) {
  test::expect_seen(test::one_run_twins());
}

TEST(OneRunProperties, APositiveExponentIsSeenOnlyWhereTheKernelPromisesNone) {
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

TEST(OneRunProperties, BitsOfASecondEngineAreJudgedOnlyWhereThereIsOne) {
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

TEST(OneRunProperties, OfTheCheckingMachineSeeTheirOwnFaultOnly) {
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

}  // namespace
}  // namespace assay
