#include <gtest/gtest.h>

#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// y[i] = 2 x[i] of 32 elements, or a loop without an end.
Program program_of(const std::string& body) {
  Program plan;
  plan.name = "test";
  plan.modules = {{"m", "test.ptx", std::make_shared<const std::string>(R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry f(.param .u64 x, .param .u64 y) {
  .reg .b32 %r<3>; .reg .b64 %rd<4>; .reg .pred %p<2>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
)" + body + "  ret;\n}\n")}};
  plan.outputs = {{"y", Dtype::fp32, {{"T", 32}}}};
  plan.launches = {{.module = "m",
                    .function = "f",
                    .grid = {1, 1, 1},
                    .block = {32, 1, 1},
                    .arguments = {PointerArgument{"x"}, PointerArgument{"y"}}}};
  return plan;
}
Program doubling() {
  return program_of(
      "  ld.global.f32 %f1, [%rd1]; add.rn.f32 %f1, %f1, %f1; setp.lt.u32 %p1, %r1, 8;\n"
      "  @%p1 bra L; mov.u32 %r2, 1;\nL: st.global.f32 [%rd2], %f1;\n");
}
TensorMap inputs() {
  Tensor x("x", Dtype::fp32, {{"T", 32}});
  for (int64_t i = 0; i < 32; ++i) x.set(i, static_cast<double>(i));
  return {{"x", x}};
}

TEST(VmBackend, IsNamedAfterTheArchitectureThatItRuns) {
  EXPECT_EQ(make_vm_backend({.arch = "sm_80"})->name(), "vm sm_80");
  EXPECT_THROW(make_vm_backend({.arch = "sm_1"}), BadInput);
}

TEST(VmBackend, RunsAProgram) {
  const Outcome out = make_vm_backend({})->run(doubling(), inputs());
  ASSERT_FALSE(out.trap) << out.trap->message;
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(out.outputs.at("y").value(i), 2.0 * static_cast<double>(i));
  EXPECT_TRUE(out.branches.empty());
}

TEST(VmBackend, CountsBranchesWhereTheyAreAskedFor) {
  const Outcome out = make_vm_backend({.branches = true})->run(doubling(), inputs());
  ASSERT_EQ(out.branches.size(), 1u);
  EXPECT_EQ(out.branches[0].function, "f");
  EXPECT_EQ(out.branches[0].sides, (std::vector<uint8_t>{3}));
}

TEST(VmBackend, EndsARunAtItsBudget) {
  const Outcome out = make_vm_backend({.instruction_budget = 1000})->run(program_of("L: bra L;\n"), inputs());
  ASSERT_TRUE(out.trap);
  EXPECT_EQ(out.trap->kind, TrapKind::hang);
}

}  // namespace
}  // namespace assay
