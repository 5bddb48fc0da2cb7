// A warp's lanes at a source line: in small programs whose every value is known.
#include "src/base/vm/line_view.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

/// Line 15 is a loop of three rounds. Line 20 runs three times; line 30 in the lanes below 16 alone; line 40
/// divides 1 by 3.
constexpr const char* kBody = R"(
.loc 1 10 0
mov.u32 %r1, 0; mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 16; setp.lt.u32 %p3, %r2, 0;
.loc 1 15 0
mov.u32 %r6, 0;
ONE:
add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 3;
@%p4 bra ONE;
.loc 1 16 0
LOOP:
.loc 1 20 0
add.u32 %r1, %r1, 7;
.loc 1 21 0
setp.lt.u32 %p2, %r1, 21;
@%p2 bra LOOP;
@!%p1 bra JOIN;
.loc 1 30 0
add.u32 %r3, %r2, 100;
.loc 1 31 0
JOIN:
.loc 1 40 0
mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40400000;
div.rn.f32 %f3, %f1, %f2;
@%p1 mul.rn.f32 %f4, %f3, %f3;
.loc 1 50 0
mov.b32 %d, %f3;
st.global.b32 [%pd], %d;
.loc 1 60 0
@%p3 mov.u32 %r5, 1;
bra DONE;
.loc 1 70 0
mov.u32 %r4, 1;
.loc 1 80 0
)";

LineView seen_at(int line, uint64_t visit = 1, const std::string& file = "k.cu",
                 std::optional<std::array<uint32_t, 3>> block = {}, std::optional<uint32_t> warp = {}) {
  SmallKernel kernel;
  kernel.declarations = ".file 1 \"src/k.cu\"\n";
  kernel.body = kBody;
  kernel.threads = 64, kernel.blocks = 2;
  TensorMap inputs;
  const Program program = plan_of(kernel, inputs);
  return view_line(program, inputs, {}, {file, line, block, warp, visit});
}

const RegisterView& register_of(const SteppedInstruction& in, const std::string& name,
                                const std::string& role) {
  for (const RegisterView& r : in.registers)
    if (r.name == name && r.role == role) return r;
  throw std::runtime_error(name + " " + role + " is not shown");
}

std::string complaint_of(int line, const std::string& file) {
  try {
    seen_at(line, 1, file);
  } catch (const BadInput& bad) {
    return bad.what();
  }
  return "";
}

TEST(LineView, ALoopMakesAVisitEachTime) {
  for (const uint64_t visit : {1u, 2u, 3u}) {
    const LineView view = seen_at(20, visit);
    EXPECT_EQ(view.visits, 3u);
    EXPECT_EQ(view.visit, visit);
    ASSERT_EQ(view.instructions.size(), 1u);
    EXPECT_EQ(view.instructions[0].text, "add.u32 %r1, %r1, 7");
    EXPECT_EQ(register_of(view.instructions[0], "%r1", "read").lanes.at(5).text,
              std::to_string(7 * visit - 7));
    EXPECT_EQ(register_of(view.instructions[0], "%r1", "write").lanes.at(5).text, std::to_string(7 * visit));
  }
  EXPECT_EQ(seen_at(20, kLastVisit).visit, 3u);
  const LineView none = seen_at(20, 4);
  EXPECT_EQ(none.visits, 3u);
  EXPECT_EQ(none.visit, 0u);
  EXPECT_TRUE(none.instructions.empty());
}

TEST(LineView, ALoopWithinALineMakesThemToo) {
  EXPECT_EQ(seen_at(15).visits, 3u);
  EXPECT_EQ(seen_at(15).instructions.size(), 4u);
  const LineView last = seen_at(15, kLastVisit);
  ASSERT_EQ(last.instructions.size(), 3u);
  EXPECT_EQ(register_of(last.instructions[0], "%r6", "write").lanes.at(0).text, "3");
}

TEST(LineView, ShowsTheLanesThatComeThereAndNoOthers) {
  const LineView view = seen_at(30);
  EXPECT_EQ(view.warp, 0u);
  ASSERT_EQ(view.instructions.size(), 1u);
  EXPECT_EQ(view.instructions[0].active, 0xffffu);
  const RegisterView& sum = register_of(view.instructions[0], "%r3", "write");
  ASSERT_EQ(sum.lanes.size(), 16u);
  EXPECT_EQ(sum.type, "u32");
  EXPECT_EQ(sum.lanes[15].lane, 15);
  EXPECT_EQ(sum.lanes[15].text, "115");
}

TEST(LineView, SetsTheExactValueBesideAFloat) {
  const LineView view = seen_at(40);
  ASSERT_EQ(view.instructions.size(), 4u);
  const RegisterView& third = register_of(view.instructions[2], "%f3", "write");
  EXPECT_EQ(third.lanes[0].text, "0.333333343");
  ASSERT_EQ(third.lanes[0].exact.size(), 1u);
  const ExactValue& exact = third.lanes[0].exact[0];
  EXPECT_EQ(exact.exact, 1.0 / 3);
  // fp32(1/3) = 0x1.555556p-2 is 1/3 of 2^-25 above: a third of its unit 2^-25.
  EXPECT_NEAR(exact.ulps, -1.0 / 3, 0x1p-25);
  const SteppedInstruction& guarded = view.instructions[3];
  EXPECT_EQ(guarded.guard, "@%p1");
  EXPECT_EQ(guarded.active, 0xffffffffu);
  EXPECT_EQ(guarded.executed, 0xffffu);
  EXPECT_EQ(register_of(guarded, "%p1", "guard").lanes.at(20).text, "false");
}

TEST(LineView, NamesTheElementThatIsReached) {
  const LineView view = seen_at(50, 1, "src/k.cu", std::array<uint32_t, 3>{1, 0, 0}, 1);
  EXPECT_EQ(view.block[0], 1u);
  EXPECT_EQ(view.warp, 1u);
  ASSERT_EQ(view.instructions.size(), 2u);
  ASSERT_EQ(view.instructions[1].memory.size(), 32u);
  EXPECT_EQ(view.instructions[1].memory[3].direction, "write");
  EXPECT_EQ(view.instructions[1].memory[3].place, "d[t=99]");
  EXPECT_EQ(register_of(view.instructions[1], "%d", "read").type,
            "f32");  // its shadow says what the bits are
}

TEST(LineView, NamesTheFragmentsOfAMatrixProduct) {
  SmallKernel kernel;
  kernel.declarations = ".file 1 \"k.cu\"\n";
  kernel.body = R"(
mov.u32 %r1, 0x3f803f80; mov.u32 %r2, 0x40003f80;
mov.f32 %f1, 0f3F000000;
.loc 1 9 0
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f2, %f3, %f4, %f5}, {%r1, %r1, %r1, %r1}, {%r2, %r2},
  {%f1, %f1, %f1, %f1};
.loc 1 10 0
)";
  TensorMap inputs;
  const Program program = plan_of(kernel, inputs);
  const LineView view = view_line(program, inputs, {}, {"k.cu", 9, {}, {}, 1});
  ASSERT_EQ(view.instructions.size(), 1u);
  const SteppedInstruction& product = view.instructions[0];
  const auto& a = register_of(product, "%r1", "A");
  EXPECT_EQ(a.type, "bf16x2");
  EXPECT_EQ(a.lanes.at(31).text, "1 1");
  EXPECT_EQ(register_of(product, "%r2", "B").lanes.at(7).text, "1 2");
  EXPECT_EQ(register_of(product, "%f1", "C").lanes.at(7).text, "0.5");
  EXPECT_EQ(register_of(product, "%f5", "D").lanes.at(7).text, "24.5");  // 8 (1 + 2) + 1/2
}

TEST(LineView, OfAProductInPlaceTheSumIsBothCAndD) {
  SmallKernel kernel;
  kernel.declarations = ".file 1 \"k.cu\"\n.shared .align 1024 .b8 tile[8192];\n";
  kernel.threads = 128;
  kernel.body = R"(
mov.u32 %r0, tile; shl.b32 %r1, %r32, 4; add.s32 %r1, %r1, %r0;
and.b32 %r2, %r0, 0x3ffff; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd8, %r2; or.b64 %rd8, %rd8, 0x1000080000;
mov.u32 %r10, 0x3f803f80; mov.u32 %r11, %r10; mov.u32 %r12, %r10; mov.u32 %r13, %r10;
mov.u32 %r3, 0x40004000; st.shared.v4.b32 [%r1], {%r3, %r3, %r3, %r3};
mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; fence.proxy.async; bar.sync 0;
wgmma.fence.sync.aligned;
.loc 1 9 0
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13},
  %rd8, 1, 1, 1, 0;
.loc 1 10 0
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
)";
  TensorMap inputs;
  const Program program = plan_of(kernel, inputs);
  const LineView view = view_line(program, inputs, {}, {"k.cu", 9, {}, 3, 1});
  EXPECT_EQ(view.trap, "");
  ASSERT_EQ(view.instructions.size(), 1u);
  const SteppedInstruction& product = view.instructions[0];
  EXPECT_EQ(register_of(product, "%r10", "A").lanes.at(31).text, "1 1");
  EXPECT_EQ(register_of(product, "%f1", "C").lanes.at(5).text, "1");
  EXPECT_EQ(register_of(product, "%f1", "D").lanes.at(5).text, "33");  // 16 x 1 x 2 + 1
  ASSERT_FALSE(product.memory.empty());
  EXPECT_EQ(product.memory[0].place, "B of tile");
}

TEST(LineView, AnInstructionWhoseGuardNeverHoldsIsVisitedToo) {
  const LineView view = seen_at(60);
  ASSERT_EQ(view.instructions.size(), 2u);
  EXPECT_EQ(view.instructions[0].active, 0xffffffffu);
  EXPECT_EQ(view.instructions[0].executed, 0u);
  EXPECT_EQ(view.instructions[1].executed, 0xffffffffu);
}

TEST(LineView, SaysWhereNobodyComes) {
  EXPECT_EQ(seen_at(70).visits, 0u);
  EXPECT_EQ(complaint_of(25, "k.cu"),
            "k.cu:25: no instruction of this run stands there; the nearest lines with instructions: 21, 30");
  EXPECT_EQ(complaint_of(20, ".cu"),
            ".cu: no instruction of this run comes from it; they come from src/k.cu, test.ptx");
  EXPECT_THROW(seen_at(20, 1, "k.cu", std::array<uint32_t, 3>{2, 0, 0}), BadInput);
  EXPECT_THROW(seen_at(20, 1, "k.cu", {}, 2), BadInput);
}

}  // namespace
}  // namespace assay::vm
