// Which statements let an instruction run.
#include "src/verification/diagnosis/deciding_statements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace assay {
namespace {

/// Line 9 of k.cu stores where a comparison of line 8 holds, in a loop of line 7 whose limit line 5 makes.
/// Line 6 makes the number that line 8 compares.
Program guarded_in_loop() {
  Program program;
  program.name = "guarded";
  program.modules.push_back({"m", "guarded.ptx", std::make_shared<const std::string>(R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "k.cu"
.visible .entry kernel(.param .u64 po, .param .u32 count) {
  .reg .f32 %r;
  .reg .b32 %t, %i, %limit, %half;
  .reg .b64 %ao;
  .reg .pred %p, %q;
  .loc 1 4 0
  ld.param.u64 %ao, [po];
  ld.param.u32 %limit, [count];
  mov.f32 %r, 0f00000000;
  mov.u32 %t, %tid.x;
  .loc 1 5 0
  min.u32 %limit, %limit, 8;
  .loc 1 6 0
  shr.u32 %half, %t, 1;
  .loc 1 7 0
  mov.u32 %i, 0;
LOOP:
  .loc 1 8 0
  setp.lt.u32 %q, %half, 3;
  .loc 1 9 0
  @%q st.global.f32 [%ao], %r;
  .loc 1 7 0
  add.s32 %i, %i, 1;
  setp.lt.u32 %p, %i, %limit;
  @%p bra LOOP;
  .loc 1 10 0
  ret;
}
)")});
  return program;
}

std::string decided_at(int ptx_line) {
  SourceLocation where;
  where.function = "kernel", where.ptx_line = ptx_line;
  std::string lines;
  for (const ChainLink& link : deciding_statements(guarded_in_loop(), where, SourceText("guarded")))
    lines += std::to_string(link.where.line) + " ";
  return lines;
}

TEST(DecidingStatements, TheGuardThenTheLoopEachBeforeWhatItsNumbersAreMadeOf) {
  EXPECT_EQ(decided_at(25), "8 6 7 5 ");
}

TEST(DecidingStatements, OfWhatNothingDecidesThereAreNone) {
  EXPECT_EQ(decided_at(16), "");
  EXPECT_EQ(decided_at(1000), "") << "no instruction";
}

/// In the program of that name, and in no other function.
TEST(DecidingStatements, TheInstructionIsFoundByItsFunctionAndItsLine) {
  const Program program = guarded_in_loop();
  const std::string& text = *program.modules[0].ptx;
  SourceLocation store;
  store.function = "kernel";
  store.ptx_line = static_cast<int>(
      1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(text.find("st.global")), '\n'));
  const auto found = find_instruction(program, store);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->module->functions[0].body[static_cast<size_t>(found->instruction)].form.operation,
            ptx::Operation::st);
  store.function = "other";
  EXPECT_FALSE(find_instruction(program, store));
}

}  // namespace
}  // namespace assay
