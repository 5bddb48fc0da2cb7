// Runs as terms over the elements of inputs.
#include "src/campaign/mutate/terms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/campaign/mutate/footprint.h"
#include "tests/mutate/subject.h"

namespace assay {
namespace {

/// One warp: %f1 and %f2 hold the lane's elements of x and y, %r1 the lane; %f9 is left in o.
Program program(const std::string& body) {
  Program plan;
  plan.name = "small";
  plan.modules.push_back(
      {"m", "small.ptx",
       std::make_shared<const std::string>(
           ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 x, .param .u64 y, "
           ".param .u64 o, .param .u64 w)\n{\n.reg .pred %p<9>; .reg .b32 %r<29>; .reg .f32 %f<29>; .reg "
           ".b64 "
           "%rd<9>; .shared .align 16 .b8 tile[256];\n"
           "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [o]; ld.param.u64 %rd8, [w];\n"
           "mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, "
           "%rd4;\nadd.s64 %rd7, %rd3, %rd4; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3;\n"
           "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];\n" +
           body + "\nst.global.f32 [%rd7], %f9;\nret;\n}\n")});
  plan.outputs = {{"o", Dtype::fp32, {{"T", 32}}}};
  plan.workspaces = {{"w", 128, ""}};
  plan.launches = {{.module = "m",
                    .function = "f",
                    .block = {32, 1, 1},
                    .arguments = {PointerArgument{"x", 0}, PointerArgument{"y", 0}, PointerArgument{"o", 0},
                                  PointerArgument{"w", 0}}}};
  return plan;
}

TensorMap inputs() {
  TensorMap made;
  for (const char* name : {"x", "y"}) {
    Tensor t(name, Dtype::fp32, {{"T", 32}});
    for (int64_t i = 0; i < 32; ++i) t.set(i, static_cast<double>(i % 7) - 2.5);
    made.emplace(name, std::move(t));
  }
  return made;
}

bool same(const std::string& body, const std::string& other) {
  return same_terms(program(body), program(other), inputs(), one_thread());
}
std::string lost(const std::string& body) {
  return terms_of(program(body), inputs(), one_thread()).lost;
}

const std::string kSum = "add.rn.f32 %f3, %f1, %f2; ", kZero = "mov.f32 %f4, 0f00000000; ",
                  kNeverMinusZero = kZero + "add.rn.f32 %f3, %f1, %f4; ";

TEST(Terms, AreOneWhereWhatDiffersIsMultipliedByALiteralZero) {
  EXPECT_TRUE(
      same(kZero + "fma.rn.f32 %f9, %f4, 0f3F800000, %f1;", kZero + "fma.rn.f32 %f9, %f4, 0f40000000, %f1;"));
  EXPECT_TRUE(same(kZero + "mul.rn.f32 %f5, %f4, 0f3F800000; fma.rn.f32 %f9, %f5, %f1, %f2;",
                   kZero + "mul.rn.f32 %f5, %f4, 0f40000000; fma.rn.f32 %f9, %f5, %f1, %f2;"));
  EXPECT_FALSE(
      same(kZero + "fma.rn.f32 %f9, %f4, 0f3F800000, %f1;", kZero + "fma.rn.f32 %f9, %f4, 0fBF800000, %f1;"))
      << "x + -0 is not x + 0 where x is -0";
  EXPECT_FALSE(
      same(kZero + "fma.rn.f32 %f9, %f4, 0f3F800000, %f1;", kZero + "fma.rn.f32 %f9, %f4, 0f7F800000, %f1;"))
      << "zero times infinity";
  EXPECT_FALSE(same(kZero + "fma.rn.f32 %f9, %f4, %f1, %f2;", "fma.rn.f32 %f9, 0f3F800000, %f1, %f2;"));
  EXPECT_FALSE(same(kZero + "fma.rn.f32 %f9, %f4, %f1, %f2;", "mov.f32 %f9, %f2;")) << "x may be infinite";
}

TEST(Terms, LeaveOutZerosThatChangeNoBit) {
  EXPECT_TRUE(same(kSum + "add.rn.f32 %f9, %f3, 0f80000000;", kSum + "mov.f32 %f9, %f3;"));
  EXPECT_TRUE(
      same(kNeverMinusZero + "add.rn.f32 %f9, %f3, 0f00000000;", kNeverMinusZero + "mov.f32 %f9, %f3;"));
  EXPECT_TRUE(
      same(kNeverMinusZero + "sub.rn.f32 %f9, %f3, 0f00000000;", kNeverMinusZero + "mov.f32 %f9, %f3;"));
  EXPECT_FALSE(same(kSum + "add.rn.f32 %f9, %f3, 0f00000000;", kSum + "mov.f32 %f9, %f3;")) << "-0 + 0";
  EXPECT_FALSE(same("add.rn.f32 %f9, %f1, 0f80000000;", "mov.f32 %f9, %f1;")) << "of an input any NaN";
  EXPECT_FALSE(
      same(kNeverMinusZero + "add.rm.f32 %f9, %f3, 0f00000000;", kNeverMinusZero + "mov.f32 %f9, %f3;"));
  EXPECT_FALSE(same(kSum + "add.ftz.f32 %f9, %f3, 0f80000000;", kSum + "mov.f32 %f9, %f3;"));
  EXPECT_FALSE(
      same("mul.rn.f32 %f3, %f1, %f2; add.rn.f32 %f9, %f3, 0f00000000;", "mul.rn.f32 %f9, %f1, %f2;"));
}

TEST(Terms, TellOperationsOperandsAndTheirOrderApart) {
  const std::string bodies[] = {"add.rn.f32 %f9, %f1, %f2;",
                                "add.rn.f32 %f9, %f2, %f1;",
                                "sub.rn.f32 %f9, %f1, %f2;",
                                "mul.rn.f32 %f9, %f1, %f2;",
                                "mul.rn.f32 %f9, %f2, %f1;",
                                "add.rz.f32 %f9, %f1, %f2;",
                                "fma.rn.f32 %f9, %f1, %f2, %f1;",
                                "fma.rn.f32 %f9, %f1, %f2, %f2;",
                                "min.f32 %f9, %f1, %f2;",
                                "max.f32 %f9, %f1, %f2;",
                                "mov.f32 %f9, %f1;",
                                "mov.f32 %f9, %f2;",
                                "mov.f32 %f9, 0f00000000;",
                                "mov.f32 %f9, 0f80000000;",
                                "ld.global.f32 %f9, [%rd5+-0]; shfl.sync.bfly.b32 %f9, %f9, 1, 31, -1;",
                                "mov.b32 %r5, %f1; shl.b32 %r6, %r5, 16; mov.b32 %f9, %r6;",
                                "mov.b32 %r5, %f1; shl.b32 %r6, %r5, 8; mov.b32 %f9, %r6;",
                                "cvt.rn.bf16x2.f32 %r5, %f1, %f2; mov.b32 %f9, %r5;",
                                "ld.global.f32 %f9, [%rd8];"};
  for (const std::string& a : bodies)
    for (const std::string& b : bodies) EXPECT_EQ(same(a, b), &a == &b) << a << " and " << b;
}

TEST(Terms, FollowMemoryShufflesAndHalves) {
  const std::string
      through = "st.shared.f32 [%r4], %f1; ld.shared.f32 %f9, [%r4];",
      packed = "mov.b32 %r5, %f1; mov.b32 {%h1, %h2}, %r5; mov.b32 %r6, {%h1, %h2}; mov.b32 %f9, %r6;",
      twice = "shfl.sync.bfly.b32 %f3, %f1, 1, 31, -1; shfl.sync.bfly.b32 %f9, %f3, 1, 31, -1;",
      chosen = "setp.lt.u32 %p1, %r1, 40; selp.f32 %f9, %f1, %f2, %p1;";
  for (const std::string& body : {through, ".reg .b16 %h<3>; " + packed, twice, chosen})
    EXPECT_TRUE(same(body, "mov.f32 %f9, %f1;")) << body;
  EXPECT_FALSE(same("setp.lt.u32 %p1, %r1, 31; selp.f32 %f9, %f1, %f2, %p1;", "mov.f32 %f9, %f1;"));
  EXPECT_FALSE(same("setp.lt.f32 %p1, %f1, %f2; selp.f32 %f9, %f1, %f2, %p1;", "mov.f32 %f9, %f1;"));
  EXPECT_FALSE(same("ld.shared.f32 %f9, [%r4];", "ld.shared.f32 %f9, [%r2];"))
      << "nothing has written either";
}

/// A column of padding more in a tensor core's sum, and a sum of padding alone.
TEST(Terms, OfATensorCoresSumLeaveOutPadding) {
  const std::string product =
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f5, %f6, %f7, %f8}, {%r10, %r11, %r12, %r13}, "
      "{%r14, "
      "%r15}, {%f5, %f6, %f7, %f8}; ";
  const auto sums = [&](const std::string& a, const std::string& b) {
    return "mov.f32 %f5, 0f00000000; mov.f32 %f6, %f5; mov.f32 %f7, %f5; mov.f32 %f8, %f5; cvt.rna.tf32.f32 "
           "%r10, "
           "%f1; mov.b32 %r11, %r10; mov.b32 %r12, 0; mov.b32 %r13, 0; cvt.rna.tf32.f32 %r14, %f2; mov.b32 "
           "%r15, " +
           b + "; " + product + "mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r14, " + a + "; ";
  };
  const std::string end = "mov.f32 %f9, %f5;", first = sums("0f3F800000", "0f3F800000");
  EXPECT_TRUE(same(first + product + end, first + end)) << "a sum of nothing";
  EXPECT_TRUE(same(first + end, sums("0f3F800000", "0f40000000") + end)) << "other padding";
  EXPECT_FALSE(same(sums("0f7F800000", "0f3F800000") + product + end, first + end)) << "zero times infinity";
  EXPECT_FALSE(same(first + "mov.b32 %r10, 0f3F800000; " + product + end, first + end));
  EXPECT_FALSE(same(first + "cvt.rna.tf32.f32 %r14, %f1; " + product + end, first + end))
      << "zero times what may be infinite";
}

TEST(Terms, AreLostWhereValuesDecide) {
  const std::string by_value = "setp.lt.f32 %p1, %f1, %f2; mov.f32 %f9, %f1; ";
  EXPECT_EQ(lost("mov.f32 %f9, %f1;"), "");
  EXPECT_EQ(lost(by_value + "@%p1 mov.f32 %f9, %f2;"), "a guard");
  EXPECT_EQ(lost(by_value + "@%p1 bra $L_a; mov.f32 %f9, %f2; $L_a:"), "a guard");
  EXPECT_EQ(lost("mov.b32 %r5, %f1; and.b32 %r6, %r5, 4; add.s32 %r7, %r2, %r6; ld.shared.f32 %f9, [%r7];"),
            "an address");
  EXPECT_EQ(lost("mov.b32 %r5, %f1; and.b32 %r6, %r5, 4; shfl.sync.idx.b32 %f9, %f2, %r6, 31, -1;"),
            "a lane");
  EXPECT_EQ(lost("mov.b32 %r5, %f1; and.b32 %r6, %r5, 4; shfl.sync.idx.b32 %r7, %r6, %r6, 31, -1; mov.b32 "
                 "%f9, %r7;"),
            "a lane");
  EXPECT_EQ(lost("mov.f32 %f9, %f1; atom.global.add.f32 %f9, [%rd8], %f1;"), "an atomic");
  EXPECT_EQ(lost(by_value + "vote.sync.ballot.b32 %r5, %p1, -1; mov.b32 %f9, %r5;"),
            "what lanes tell each other");
  EXPECT_EQ(lost("mov.f32 %f9, %f1; mov.u64 %rd8, 8; ld.global.f32 %f9, [%rd8];"), "a trap");
}

/// Registers alone say nothing of a warpgroup's product: both operands lie in shared memory.
TEST(Terms, AreLostBehindProductsOfWhatLiesInSharedMemory) {
  Program plan = program("");
  plan.modules[0].ptx = std::make_shared<const std::string>(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f(.param .u64 x, .param .u64 y, "
      ".param "
      ".u64 o, .param .u64 w)\n{\n.reg .pred %p<2>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; "
      ".shared "
      ".align 1024 .b8 tile[4096];\n"
      "ld.param.u64 %rd1, [x]; ld.param.u64 %rd3, [o]; mov.u32 %r1, %tid.x; and.b32 %r5, %r1, 31; "
      "mul.wide.u32 "
      "%rd4, %r5, 4;\nadd.s64 %rd5, %rd1, %rd4; add.s64 %rd7, %rd3, %rd4; ld.global.f32 %f1, [%rd5]; mov.u32 "
      "%r2, tile; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3;\n"
      "st.shared.f32 [%r4], %f1; st.shared.f32 [%r4+512], %f1; st.shared.f32 [%r4+1024], %f1; st.shared.f32 "
      "[%r4+1536], %f1; st.shared.f32 [%r4+2048], %f1;\nfence.proxy.async; bar.sync 0; shr.u32 %r6, %r2, 4; "
      "cvt.u64.u32 %rd6, %r6; or.b64 %rd6, %rd6, 68720001024; setp.ne.b32 %p1, 0, 0;\n"
      "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f2, %f3, %f4, %f5}, "
      "%rd6, %rd6, %p1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; "
      "setp.lt.u32 %p1, %r1, 32; @%p1 st.global.f32 [%rd7], %f2;\nret;\n}\n");
  plan.launches[0].block = {128, 1, 1};
  EXPECT_EQ(terms_of(plan, inputs(), one_thread()).lost, "a product of another kind");
}

/// The law that they are for: where the terms are the same so are the bits, whatever is put in.
TEST(Terms, ThatAreTheSameMeanTheSameBits) {
  const CleanCase clean = make_clean_case(small_case(), subject(), one_thread(), 0);
  const Module& module = clean.plan.modules[0];
  const ptx::MutableText text(module.ptx, module.path);
  const int32_t function = clean.reach.executed.begin()->first.second;
  int alike = 0, tried = 0, turn = 0;
  for (const ptx::Mutation& m : text.mutations(function)) {
    if (!clean.reach.has(module.name, function, m.instruction) || turn++ % 8 != 0) continue;
    Program changed = clean.plan;
    changed.modules[0].ptx = std::make_shared<const std::string>(text.with(m));
    vm::MachineOptions options = one_thread();
    options.instruction_budget = 100'000;
    try {
      ++tried;
      if (!same_terms(clean.plan, changed, clean.inputs, options)) continue;
    } catch (const std::exception&) {
      continue;  // no instruction of any machine
    }
    ++alike;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const TensorMap special =
          with_special_values(clean.inputs, seed % 2 ? SpecialValues::zeros : SpecialValues::sprinkled, seed);
      EXPECT_TRUE(same_bits(vm::run(clean.plan, special, options), vm::run(changed, special, options)))
          << text.name(m) << " " << text.original(m) << " -> " << text.replacement(m);
    }
  }
  EXPECT_GT(alike, 2) << "of " << tried;
}

}  // namespace
}  // namespace assay
