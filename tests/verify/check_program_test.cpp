#include "src/verification/verify/check_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "src/result/finding_kind.h"
#include "tests/vm/small_kernel.h"

namespace assay {
namespace check_program_test {

Verification check(const vm::SmallKernel& kernel, ProgramCheckOptions options = {}) {
  TensorMap inputs;
  const Program program = vm::plan_of(kernel, inputs);
  options.machine.threads = 1;
  return check_program("small", program, inputs, options);
}
bool has(const Verification& v, FindingKind kind) {
  return kinds_of(v).contains(kind);
}
std::string failures(const Verification& v) {
  std::string all;
  for (const std::string& failure : v.properties_failed) all += failure + "\n";
  return all;
}

TEST(CheckProgram, ACleanOnePassesAndSaysWhatWasTried) {
  const Verification v = check({.body = "add.u32 %d, %a, %t;", .a = {5}, .threads = 96, .blocks = 3});
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause << failures(v);
  ASSERT_TRUE(v.program);
  ASSERT_EQ(v.program->written.size(), 1u);
  EXPECT_EQ(v.program->written[0].largest, 5 + 96 * 3 - 1);
  EXPECT_TRUE(std::any_of(v.repeats.begin(), v.repeats.end(),
                          [](const Repeat& r) { return r.kind == RepeatKind::order; }));
  EXPECT_TRUE(std::any_of(v.repeats.begin(), v.repeats.end(),
                          [](const Repeat& r) { return r.kind == RepeatKind::poison; }));
}

TEST(CheckProgram, ARaceIsFoundByTheCheckAndByTheOrder) {
  const vm::SmallKernel racing{
      .declarations = ".shared .align 4 .b32 box;",
      .body =
          "mov.u32 %d, 0; mov.u32 %r0, box;\n"
          "setp.lt.u32 %p0, %t, 32; @%p0 st.shared.u32 [%r0], %a; @!%p0 ld.shared.u32 %d, [%r0];",
      .a = {9},
      .threads = 64};
  const Verification v = check(racing);
  EXPECT_EQ(v.verdict, Verdict::finding);
  EXPECT_TRUE(has(v, FindingKind::check));
  EXPECT_TRUE(has(v, FindingKind::bits));
  EXPECT_NE(failures(v).find("same-bits-in-any-order: blocks and warps in descending order"),
            std::string::npos);
  EXPECT_NE(failures(v).find("ld.shared.u32 at"), std::string::npos);
}

TEST(CheckProgram, AHangIsCheckedUpToItsEnd) {
  const vm::SmallKernel waiting{
      .declarations = ".shared .align 8 .b64 bar; .shared .align 4 .b32 box;",
      .body =
          "mov.u32 %d, 0; mov.u32 %r0, bar; mov.u32 %r1, box; setp.eq.u32 %p0, %t, 0;\n"
          "@%p0 mbarrier.init.shared.b64 [%r0], 1; bar.sync 0;\n"
          "setp.lt.u32 %p0, %t, 32; @%p0 st.shared.u32 [%r1], %a; @!%p0 ld.shared.u32 %d, [%r1];\n"
          "wait: mbarrier.test_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra wait;",
      .a = {9},
      .threads = 64};
  const Verification v = check(waiting);
  ASSERT_TRUE(v.trap);
  EXPECT_EQ(v.trap->kind, TrapKind::hang) << v.trap->message;
  ASSERT_TRUE(v.checks);
  ASSERT_FALSE(v.checks->findings.empty()) << v.checks->skipped;
  EXPECT_EQ(v.checks->findings[0].kind, CheckKind::race);
}

TEST(CheckProgram, AValueOfALaneThatTakesNoPartIsNoLiteral) {
  const vm::SmallKernel shuffling{.body =
                                      "mov.u32 %d, 0; setp.ge.u32 %p0, %t, 16; @%p0 bra done;\n"
                                      "shfl.sync.down.b32 %d, %a, 16, 31, 0xffff; add.f32 %d, %d, %d; done:"};
  TensorMap inputs;
  Program program = vm::plan_of(shuffling, inputs);
  program.outputs[0].dtype = Dtype::fp32;
  const Verification v = check_program("small", program, inputs, {});
  ASSERT_EQ(v.origins.size(), 1u);
  EXPECT_EQ(v.origins[0].origin.kind, OriginKind::unwritten_memory);
}

TEST(CheckProgram, PoisonThatReachesAnOutputIsAFinding) {
  const vm::SmallKernel reading{.declarations = ".shared .align 4 .b32 box;",
                                .body = "mov.u32 %r0, box; ld.shared.u32 %r1, [%r0]; and.b32 %d, %r1, 4;"};
  ProgramCheckOptions options;
  options.checks = vm::Checks::none();
  const Verification v = check(reading, options);
  EXPECT_NE(failures(v).find("same-bits-with-any-poison"), std::string::npos) << failures(v);
}

TEST(CheckProgram, NonFiniteOutputsOfUnwrittenMemoryAreAFindingWithoutTheChecksToo) {
  const vm::SmallKernel reading{
      .declarations = ".shared .align 4 .b32 box;",
      .body =
          "mov.u32 %r0, box; ld.shared.u32 %r1, [%r0]; mov.b32 %f0, %r1; add.f32 %f0, %f0, 0f3F800000;\n"
          "mov.b32 %d, %f0;"};
  TensorMap inputs;
  Program program = vm::plan_of(reading, inputs);
  program.outputs[0].dtype = Dtype::fp32;
  ProgramCheckOptions options;
  options.orders = options.poison = options.architectures = false;
  for (const char* checks : {"none", "races", "all"}) {
    options.checks = vm::parse_checks(checks);
    const Verification v = check_program("small", program, inputs, options);
    EXPECT_EQ(v.verdict, Verdict::finding) << checks;
    EXPECT_EQ(has(v, FindingKind::nonfinite), checks != std::string("all")) << "the check has told of it";
  }
  options.checks = vm::Checks::none(), options.partly = {"d"};
  EXPECT_EQ(check_program("small", program, inputs, options).verdict, Verdict::pass);
}

TEST(CheckProgram, RunsThatAreTooLongForTheChecksSayThatNothingWasChecked) {
  ProgramCheckOptions options;
  options.check_instructions = 10;
  const Verification v = check({.body = "add.u32 %d, %a, %t;", .a = {5}}, options);
  ASSERT_TRUE(v.checks);
  EXPECT_TRUE(v.checks->ran.empty());
  EXPECT_NE(v.checks->skipped.find("million lane-instructions"), std::string::npos) << v.checks->skipped;
}

TEST(CheckProgram, SumsByAtomicsAreAFindingForThoseWhoAskOnly) {
  const vm::SmallKernel sums{
      .body =
          "ld.param.u64 %rd0, [pd]; cvt.rn.f32.u32 %f0, %t; mul.rn.f32 %f0, %f0, 0f4CBEBC20;\n"
          "add.rn.f32 %f0, %f0, 0f3F800001; mov.u32 %d, 0;\n"
          "st.global.b32 [%pd], 0; bar.sync 0; red.global.add.f32 [%rd0], %f0; ret;",
      .threads = 64};
  ProgramCheckOptions options;
  options.checks = vm::Checks::none();
  const Verification v = check(sums, options);
  EXPECT_EQ(v.verdict, Verdict::pass) << failures(v);
  EXPECT_TRUE(has(v, FindingKind::order));
}

TEST(CheckProgram, NonFiniteValuesThatItMakesAreFindingsThoseItIsGivenAreNot) {
  const vm::SmallKernel dividing{
      .body = "div.rn.f32 %d, %a, %b;", .a = {std::bit_cast<uint32_t>(1.0f)}, .b = {0}};
  TensorMap inputs;
  Program program = vm::plan_of(dividing, inputs);
  program.outputs[0].dtype = Dtype::fp32;
  for (const char* name : {"a", "b"}) inputs[name].dtype = Dtype::fp32;
  const Verification made = check_program("small", program, inputs, {});
  EXPECT_TRUE(has(made, FindingKind::nonfinite));
  ASSERT_TRUE(made.origin);
  EXPECT_EQ(made.origin->kind, OriginKind::division_by_zero);
  ASSERT_EQ(made.births.size(), 1u);
  EXPECT_EQ(made.births[0].divisions_by_zero, 32u);

  for (int64_t i = 0; i < 32; ++i) inputs["a"].set(i, INFINITY), inputs["b"].set(i, 1);
  const Verification given = check_program("small", program, inputs, {});
  EXPECT_EQ(given.verdict, Verdict::pass) << given.cause;
  EXPECT_EQ(given.program->written.at(0).infinities, 32);
}

TEST(CheckProgram, InputsThatItWritesAreOutputsUnlessTheyAreFixed) {
  const vm::SmallKernel writing{.body = "add.u32 %d, %a, 1; st.global.b32 [%pa], %d;", .a = {5}};
  const Verification free = check(writing);
  EXPECT_EQ(free.verdict, Verdict::pass) << free.cause << failures(free);
  EXPECT_EQ(free.program->written.size(), 2u);
  ProgramCheckOptions options;
  options.fixed = {"a"};
  EXPECT_NE(failures(check(writing, options)).find("inputs-unchanged: a[t=0]"), std::string::npos);
}

TEST(CheckProgram, OutputsLeftUnwrittenAreFindingsUnlessTheyMayBe) {
  const vm::SmallKernel half{.body = "setp.ge.u32 %p0, %t, 16; @%p0 ret;", .threads = 32};
  EXPECT_TRUE(has(check(half), FindingKind::check));
  ProgramCheckOptions options;
  options.partly = {"d"};
  const Verification v = check(half, options);
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause << failures(v);
  EXPECT_EQ(v.program->written[0].smallest, 0);  // poison is -1
  EXPECT_TRUE(v.origins.empty());
}

TEST(CheckProgram, ATrapIsTheFirstThingSaid) {
  const Verification v = check({.body = "ld.global.b32 %d, [%pa + 4096];", .a = {5}});
  EXPECT_TRUE(has(v, FindingKind::trap));
  EXPECT_TRUE(v.repeats.empty());
}

TEST(CheckProgram, ValuesThatAreExpectedAreHeldAgainst) {
  TensorMap inputs;
  const vm::SmallKernel kernel{.body = "add.u32 %d, %a, 1;", .a = {5}};
  const Program program = vm::plan_of(kernel, inputs);
  TensorMap expected{{"d", Tensor("d", Dtype::i32, {{"T", 32}})}};
  for (int64_t i = 0; i < 32; ++i) expected["d"].set(i, 6);
  ProgramCheckOptions options;
  options.expected = &expected;
  EXPECT_EQ(check_program("small", program, inputs, options).verdict, Verdict::pass);
  expected["d"].set(3, 7);
  EXPECT_TRUE(has(check_program("small", program, inputs, options), FindingKind::violation));
  options.expected = nullptr, options.recorded = &expected;
  EXPECT_NE(failures(check_program("small", program, inputs, options)).find("same-bits-as-recorded"),
            std::string::npos);
}

}  // namespace check_program_test
}  // namespace assay
