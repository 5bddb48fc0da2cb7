// What counts for a loop on its line, and what only stands there.
#include "src/verification/diagnosis/guarding_ops.h"

#include <gtest/gtest.h>

#include <string>

#include "src/base/vm/changed_run.h"
#include "src/base/vm/opcode.h"

namespace assay {
namespace {

/// o[t] = 3 x[t] by a loop whose head, the reads in it and the address of o stand on line 7, the limit on
/// line 6.
Program loop() {
  Program program;
  program.name = "loop";
  program.modules.push_back({"m", "loop.ptx", std::make_shared<const std::string>(R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "k.cu"
.visible .entry kernel(.param .u64 px, .param .u64 po) {
  .reg .f32 %x, %r;
  .reg .b32 %t, %i, %limit;
  .reg .b64 %ax, %ao, %step, %at;
  .reg .pred %p;
  .loc 1 6 0
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  mov.f32 %r, 0f00000000;
  mov.u32 %limit, 3;
  .loc 1 7 0
  mov.u32 %i, 0;
LOOP:
  setp.ge.s32 %p, %i, %limit;
  @%p bra DONE;
  mov.u64 %at, %ax;
  ld.global.f32 %x, [%at];
  add.rn.f32 %r, %r, %x;
  add.s32 %i, %i, 1;
  bra LOOP;
DONE:
  add.s64 %ao, %ao, %step;
  st.global.f32 [%ao], %r;
  ret;
}
)")});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 8}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {8, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}}});
  return program;
}

TEST(GuardingOps, CountsAreWhatAComparisonOfTheirLineTakes) {
  vm::ChangedRuns runs(loop(), {{"x", Tensor("x", Dtype::fp32, {{"T", 8}})}}, {});
  std::string lines;
  for (const size_t at : counting(runs.code(0)))
    lines += std::to_string(vm::instruction_of(runs.code(0), runs.code(0).ops[at])->ptx_line) + " ";
  EXPECT_EQ(lines, "19 26 ") << "neither the limit of line 6 nor addresses";
}

}  // namespace
}  // namespace assay
