#include "src/campaign/program_fuzz/program_fuzz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "src/base/numerics/bad_input.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace program_fuzz_test {

/// y[i] = x[i] / 4 of n elements, and what `before` does first: %t the element, %n the size.
std::string ptx(const std::string& before) {
  return R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry quarter(.param .u64 px, .param .u64 py, .param .u32 pn) {
  .reg .b64 %x, %y, %at; .reg .b32 %t, %n, %c, %r<4>; .reg .f32 %f; .reg .pred %p, %q;
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; ld.param.u32 %n, [pn];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.s32 %t, %c, 32, %t;
)" + before +
         R"(
  setp.ge.u32 %p, %t, %n; @%p bra OUT;
  mul.wide.u32 %at, %t, 4; add.s64 %x, %x, %at; add.s64 %y, %y, %at;
  ld.global.f32 %f, [%x]; mul.rn.f32 %f, %f, 0f3E800000; st.global.f32 [%y], %f;
OUT: ret;
}
)";
}

class ProgramFuzz : public testing::Test {
 protected:
  FuzzRun fuzz(const std::string& before, int64_t cases = 60, uint64_t seed = 1,
               const std::string& accepts = "1", int64_t most_bytes = 1 << 20, int jobs = 2) {
    std::ofstream(folder / "k.ptx") << ptx(before);
    std::ofstream(folder / "k.json") << R"j({"ptx": "k.ptx", "accepts": ")j" + accepts + R"j(",
      "sizes": {"n": {"value": 100, "from": 1, "to": 500}},
      "tensors": {"x": {"dtype": "fp32", "shape": ["n"], "values": "normal"},
                  "y": {"dtype": "fp32", "shape": ["n"]}},
      "launches": [{"function": "quarter", "grid": "ceil_div(n, 32)", "block": 32,
                    "arguments": ["x", "y", {"i32": "n"}]}]})j";
    const LaunchFile file(folder / "k.json", {});
    return fuzz_program(file,
                        {.cases = cases,
                         .seed = seed,
                         .jobs = jobs,
                         .replay = "assay check k.json",
                         .most_bytes = most_bytes},
                        {});
  }
  const ScratchFolder folder;
};

TEST_F(ProgramFuzz, ACleanProgramPassesAllThatIsAsked) {
  const FuzzRun run = fuzz("");
  EXPECT_EQ(run.cases, 60);
  EXPECT_EQ(run.passed, 60);
  EXPECT_TRUE(run.findings.empty());
  for (const PropertyRow& row : run.properties) EXPECT_EQ(row.checked, 60) << row.name;
}

TEST_F(ProgramFuzz, AFaultOfSomeSizesIsFoundAndMadeSmall) {
  // At more than 256 elements one thread is sent past the end.
  const FuzzRun run = fuzz("setp.gt.u32 %q, %n, 256; @%q add.u32 %n, %n, 1;", 150);
  ASSERT_EQ(run.findings.size(), 1u);
  const Verification& v = run.findings.front();
  ASSERT_TRUE(v.trap);
  EXPECT_EQ(v.trap->kind, TrapKind::out_of_bounds);
  ASSERT_EQ(v.program->sizes.size(), 1u);
  EXPECT_EQ(v.program->sizes[0].value, 257);
  EXPECT_EQ(v.replay.find("assay check k.json --size n=257 --seed "), 0u) << v.replay;
}

TEST_F(ProgramFuzz, TheSameSeedGivesTheSameRun) {
  const char* const fault = "setp.gt.u32 %q, %n, 256; @%q add.u32 %n, %n, 1;";
  const FuzzRun once = fuzz(fault, 40, 7), again = fuzz(fault, 40, 7);
  EXPECT_EQ(once.passed, again.passed);
  EXPECT_EQ(once.properties[0].failed, again.properties[0].failed);
}

/// Large sizes take long, so that small ones that are drawn after them end before them.
TEST_F(ProgramFuzz, WhatIsFoundAndMadeSmallDoesNotDependOnTheJobs) {
  const char* const fault =
      "setp.gt.u32 %q, %n, 256; @%q add.u32 %n, %n, 1; @!%q bra GO; mov.u32 %r0, 0;\n"
      "AGAIN: add.u32 %r0, %r0, 1; mul.lo.u32 %r1, %n, 8; setp.lt.u32 %q, %r0, %r1; @%q bra AGAIN; GO:\n"
      "setp.eq.u32 %q, %n, 100; @%q add.s64 %y, %y, 1;";
  const auto told = [&](int jobs) {
    std::string all;
    for (const Verification& v : fuzz(fault, 40, 7, "n == 100 || n > 256", 1 << 20, jobs).findings)
      all += v.cause + " " + v.replay + "\n";
    return all;
  };
  const std::string alone = told(1);
  EXPECT_GE(std::count(alone.begin(), alone.end(), '\n'), 2) << alone;
  for (const int jobs : {2, 8, 8}) EXPECT_EQ(told(jobs), alone) << jobs;
}

TEST_F(ProgramFuzz, ARunOfNothingIsNoPass) {
  EXPECT_NO_THROW(fuzz("", 5));
  EXPECT_THROW(fuzz("", 5, 1, "1", 1), BadInput);
}

TEST_F(ProgramFuzz, SizesThatAreNotAcceptedAreNotDrawn) {
  EXPECT_TRUE(fuzz("setp.gt.u32 %q, %n, 256; @%q add.u32 %n, %n, 1;", 40, 1, "n <= 256").findings.empty());
  EXPECT_THROW(fuzz("", 40, 1, "n > 1000"), BadInput);
}

}  // namespace program_fuzz_test
}  // namespace assay
