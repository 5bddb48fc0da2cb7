#include "src/verification/diagnosis/element_slice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kernels/kernel.h"
#include "src/base/vm/event_log.h"
#include "tests/diagnosis/elementwise_kernel.h"
#include "tests/vm/small_kernel.h"

namespace assay {
namespace {

/// One instruction on each line: a chain has a step per line.
ElementSlice slice_of(std::string body, double x = 2, double y = 3, double special = 5) {
  for (size_t at = 0; (at = body.find("; ", at)) != std::string::npos;) body[at + 1] = '\n';
  const auto slice = slice_element(elementwise_plan(body), elementwise_inputs(x, y, special), {}, "o", 3);
  EXPECT_TRUE(slice) << body;
  return slice.value_or(ElementSlice{});
}

struct Chain {
  const char* what;
  const char* body;
  std::vector<std::string>
      opcodes;  ///< of the chain, input first, the loads before %x and %y and the store left out
};

const std::vector<Chain>& chains() {
  static const std::vector<Chain> all = {
      {"the larger term of a sum",
       "mul.rn.f32 %f1, %x, %x; neg.f32 %f2, %y; add.rn.f32 %r, %f1, %f2;",
       {"mul.rn.f32", "add.rn.f32"}},
      {"the product of a fused multiply-add",
       "mul.rn.f32 %f1, %x, %x; fma.rn.f32 %r, %f1, %y, %y;",
       {"mul.rn.f32", "fma.rn.f32"}},
      {"the addend of a fused multiply-add",
       "mul.rn.f32 %f1, %x, %x; mul.rn.f32 %f2, %f1, 0f447A0000; fma.rn.f32 %r, %x, %y, %f2;",
       {"mul.rn.f32", "mul.rn.f32", "fma.rn.f32"}},
      {"the factor that was computed",
       "add.rn.f32 %f1, %x, %x; mul.rn.f32 %r, %f1, 0f3A83126F;",
       {"add.rn.f32", "mul.rn.f32"}},
      {"the factor furthest from 1",
       "add.rn.f32 %f1, %x, %x; ex2.approx.f32 %f2, %f1; mul.rn.f32 %r, %f1, %f2;",
       {"add.rn.f32", "ex2.approx.f32", "mul.rn.f32"}},
      {"the minimum that was taken",
       "add.rn.f32 %f1, %x, %x; neg.f32 %f2, %f1; min.f32 %r, %y, %f2;",
       {"add.rn.f32", "neg.f32", "min.f32"}},
      {"the infinity",
       "ex2.approx.f32 %f1, 0f43480000; neg.f32 %f2, %f1; fma.rn.f32 %r, %x, %y, %f2;",
       {"ex2.approx.f32", "neg.f32", "fma.rn.f32"}},
  };
  return all;
}

TEST(ElementSlice, TheChainFollowsTheOperandsThatDecideTheSize) {
  for (const Chain& chain : chains()) {
    const ElementSlice slice = slice_of(chain.body);
    std::vector<std::string> opcodes;
    for (const SliceStep& step : slice.chain) {
      const std::string opcode = step.at.instruction.substr(0, step.at.instruction.find(' '));
      if (opcode != "ld.global.f32" && opcode != "st.global.f32") opcodes.push_back(opcode);
    }
    EXPECT_EQ(opcodes, chain.opcodes) << chain.what;
  }
}

TEST(ElementSlice, ValuesOperandsAndInputsAreThoseOfTheElement) {
  const ElementSlice slice = slice_of("mul.rn.f32 %f1, %x, %y; add.rn.f32 %r, %f1, %x;");
  EXPECT_EQ(slice.element, "o[t=3]");
  EXPECT_EQ(slice.value, 20);
  EXPECT_EQ(slice.instances, 5);
  ASSERT_EQ(slice.inputs.size(), 2u);
  EXPECT_EQ(slice.inputs[0].largest, "x[t=3]");
  EXPECT_EQ(slice.inputs[0].value, 5);
  ASSERT_EQ(slice.chain.size(), 4u);  // ld, mul, add, st
  const SliceStep& sum = slice.chain[2];
  EXPECT_EQ(sum.result, 20);
  ASSERT_EQ(sum.operands.size(), 2u);
  EXPECT_EQ(sum.operands[0].value, 15);
  EXPECT_EQ(sum.thread[0], 3u);
  ASSERT_EQ(slice.nodes.size(), 5u);
  EXPECT_EQ(slice.nodes[1].operands.at(0).made_by, 2);
  std::set<std::string> read;
  for (const SliceNode& node : slice.nodes)
    for (const SliceNodeOperand& o : node.operands)
      if (o.source == OperandSource::input) read.insert(o.input);
  EXPECT_EQ(read, (std::set<std::string>{"x[t=3]", "y[t=3]"}));
}

/// wgmma with A in registers and B, words of two halves, in shared memory.
vm::SmallKernel warpgroup_sum(const std::string& halves) {
  vm::SmallKernel kernel;
  kernel.threads = 128;
  kernel.declarations = ".shared .align 1024 .b8 tile[4096];";
  kernel.body =
      "mov.u32 %r0, tile; shl.b32 %r1, %r32, 4; add.s32 %r1, %r1, %r0; mov.u32 %r2, " + halves +
      ";\n"
      "st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2}; fence.proxy.async; bar.sync 0;\n"
      "and.b32 %r2, %r0, 0x3ffff; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd8, %r2; or.b64 %rd8, %rd8, "
      "0x1000080000;\n"
      "mov.u32 %r10, 0x3f803f80; mov.u32 %r11, %r10; mov.u32 %r12, 0x40004000; mov.u32 %r13, %r12;\n"
      "mov.f32 %f1, 0f3F000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; setp.eq.u32 %p1, %r0, "
      "%r0;\n"
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, %rd8, "
      "%p1, 1, 1, "
      "0;\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\nmov.b32 %d, %f1;\n";
  return kernel;
}

/// What a product is of in shared memory is in no register: it has its format and its value all the same, or
/// no element would be said to move with the other factor.
TEST(ElementSlice, AWarpgroupsFactorInSharedMemoryHasItsValue) {
  TensorMap inputs;
  const Program plan = vm::plan_of(warpgroup_sum("0x40003f80"), inputs);
  const vm::ValueSlice slice = vm::slice_value(plan, inputs, {}, "d", 5);
  size_t seen = 0;
  for (const vm::SliceInstance& i : slice.instances) {
    if (i.flow != vm::Flow::matrix) continue;
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const vm::SliceOperand& operand = slice.operands[o];
      if (!operand.name.starts_with("b[")) continue;
      EXPECT_EQ(operand.type, ptx::Type::bf16) << operand.name;
      EXPECT_EQ(vm::value_of(operand.type, operand.bits), seen % 2 == 0 ? 1 : 2) << operand.name;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 16U);
}

TEST(ElementSlice, OfAWarpgroupsSumTheTermThatDecidesStandsWithC) {
  TensorMap inputs;
  const Program plan = vm::plan_of(warpgroup_sum("0x3f803f80"), inputs);
  const auto slice = slice_element(plan, inputs, {}, "d", 5);
  ASSERT_TRUE(slice);
  const SliceStep* sum = nullptr;
  for (const SliceStep& step : slice->chain)
    if (step.at.instruction.starts_with("wgmma.mma_async")) sum = &step;
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->result, 24.5);
  ASSERT_FALSE(sum->operands.empty());
  EXPECT_EQ(sum->operands.back().name, "c");
  EXPECT_EQ(sum->operands.back().value, 0.5);
  EXPECT_LE(sum->operands.size(), 3u);
}

TEST(ElementSlice, ALoopStandsOnceWithItsCount) {
  const ElementSlice slice = slice_of(R"(
  mov.f32 %r, %y; mov.u32 %b1, 0;
$L:
  mul.rn.f32 %f1, %r, 0f3F7F0000;
  add.rn.f32 %r, %f1, %x;
  add.s32 %b1, %b1, 1;
  setp.lt.u32 %p1, %b1, 100;
  @%p1 bra $L;)");
  int64_t rounds = 0;
  for (const SliceStep& step : slice.chain)
    if (step.at.instruction.starts_with("add.rn")) rounds = std::max(rounds, step.times);
  EXPECT_GE(rounds, 98);
  EXPECT_LT(slice.chain.size(), 12u);
  EXPECT_GE(slice.instances, 201);
  EXPECT_TRUE(slice.lines.front().instances == 100 || slice.lines.front().instances == 101);
}

/// An element at t depends on the rows up to t of its own head and column, and on nothing else.
TEST(ElementSlice, OfTheKernelsAnElementDependsOnTheRowsUpToItsOwn) {
  for (const char* name : {"gla.chunk", "gla.fused_recurrent"}) {
    Case c;
    c.kernel = name;
    c.T = 70, c.H = 2, c.K = 16, c.V = 8, c.dtype = Dtype::bf16, c.initial_state = true;
    const Kernel& kernel = find_kernel(name);
    const Operator& op = find_operator(kernel.operator_name);
    const TensorMap inputs = draw_inputs(c, op);
    const Program plan = kernel.plan(resolve_unchecked(c, op), inputs);
    const int64_t flat = (66 * 2 + 1) * 8 + 3;  // o[b=0,t=66,h=1,v=3]
    const auto slice = slice_element(plan, inputs, {}, "o", flat);
    ASSERT_TRUE(slice) << name;
    EXPECT_EQ(slice->element, "o[b=0,t=66,h=1,v=3]");
    EXPECT_EQ(slice->value, vm::run(plan, inputs, {}).outputs.at("o").value(flat)) << name;
    EXPECT_FALSE(slice->truncated);
    EXPECT_FALSE(slice->unwritten) << name;
    EXPECT_LT(slice->blocks, slice->blocks_of) << name;
    for (const SliceInput& in : slice->inputs) {
      const int64_t rows = in.elements;
      if (in.input == "q") {
        EXPECT_EQ(rows, 16) << name << " one row of q";
      } else if (in.input == "k" || in.input == "g") {
        EXPECT_EQ(rows, 67 * 16) << name << " " << in.input << ": rows 0 to 66 of one head";
        EXPECT_TRUE(in.last.starts_with(in.input + "[b=0,t=66,h=1,")) << in.last;
      } else if (in.input == "initial_state") {
        EXPECT_EQ(rows, 16) << name << " one column of the state";
      } else {
        EXPECT_EQ(in.input, "v");
        EXPECT_GE(rows, 67) << name;  // of a tile of the chunked kernel also later rows, times a score of 0
        EXPECT_TRUE(in.first.ends_with("h=1,v=3]")) << in.first;
      }
    }
  }
}

TEST(ElementSlice, AnElementThatNothingWroteHasNone) {
  EXPECT_FALSE(slice_element(elementwise_plan("setp.eq.u32 %p1, %t, 3; @%p1 ret; mov.f32 %r, %x;"),
                             elementwise_inputs(1, 1, 1), {}, "o", 3));
}

}  // namespace
}  // namespace assay
