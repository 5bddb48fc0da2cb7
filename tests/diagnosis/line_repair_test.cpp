// Which change of a line makes a program right.
#include "src/verification/diagnosis/line_repair.h"

#include <gtest/gtest.h>

#include "src/base/vm/moved_run.h"

namespace assay {
namespace {

/// o[t] = x[t], and 0 for t = 3: one instruction a line, from line 14 on.
Program masked() {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 po) {
  .reg .f32 %x, %r;
  .reg .b32 %t;
  .reg .b64 %ax, %ao, %step;
  .reg .pred %p;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  ld.global.f32 %x, [%ax];
  setp.eq.s32 %p, %t, 3;
  selp.f32 %r, 0f00000000, %x, %p;
  add.s64 %ao, %ao, %step;
  st.global.f32 [%ao], %r;
  ret;
}
)";
  Program program;
  program.name = "masked";
  program.modules.push_back({"m", "masked.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 8}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {8, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}}});
  return program;
}

/// What is tried for a line; `right`: whether o is x everywhere.
std::optional<std::string> repair_of_line(int ptx_line, int* runs = nullptr) {
  Tensor x("x", Dtype::fp32, {{"T", 8}});
  for (int64_t i = 0; i < 8; ++i) x.set(i, static_cast<double>(1 + i));
  const TensorMap inputs{{"x", x}};
  SourceLocation line;
  line.file = "masked.ptx", line.ptx_line = ptx_line;
  const auto is_right = [&](const Program& changed) {
    if (runs) ++*runs;
    const vm::RealOutputs o = vm::run_moved(changed, inputs, {}, {});
    if (o.empty()) return false;
    for (int64_t i = 0; i < 8; ++i)
      if (o.at("o")[static_cast<size_t>(i)] != x.value(i)) return false;
    return true;
  };
  return repair_of(masked(), line, is_right, [] { return false; });
}

TEST(LineRepair, TheLineThatIsWrongHasAChangeThatMakesAllRight) {
  const auto repair = repair_of_line(16);
  ASSERT_TRUE(repair);
  EXPECT_EQ(*repair, "mov.f32 %r, %x for selp.f32 %r, 0f00000000, %x, %p");
}

TEST(LineRepair, AnotherLineHasNone) {
  int runs = 0;
  EXPECT_FALSE(repair_of_line(12, &runs));
  EXPECT_GT(runs, 0);
}

TEST(LineRepair, OfALineWithoutInstructionsNothingIsTried) {
  int runs = 0;
  EXPECT_FALSE(repair_of_line(5, &runs));
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace assay
