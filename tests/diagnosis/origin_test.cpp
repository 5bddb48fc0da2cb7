#include "src/verification/diagnosis/origin.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/diagnosis/elementwise_kernel.h"

namespace assay {
namespace {

struct Twin {
  const char* kind;
  const char* body;  ///< with x[3] = special, o[3] is not finite
  double x, y, special;
  const char* instruction;  ///< the origin's opcode
  const char* silent_body;  ///< repaired: o[3] is finite although the same special value is there
};

const std::vector<Twin>& twins() {
  static const std::vector<Twin> all = {
      {"exp-overflow", "ex2.approx.f32 %f1, %x;\n mul.rn.f32 %f2, %f1, 0f00000000;\n add.rn.f32 %r, %f2, %y;",
       1, 1, 130, "ex2.approx.f32",
       "setp.gt.f32 %p1, %x, 0f42FE0000; ex2.approx.f32 %f1, %x; selp.f32 %f2, 0f00000000, %f1, %p1; "
       "add.rn.f32 %r, %f2, %y;"},
      {"zero-times-infinity", "mov.f32 %f1, 0f7F800000; sub.rn.f32 %f2, %x, %x; mul.rn.f32 %r, %f1, %f2;", 1,
       1, 2, "mul.rn.f32",
       "mov.f32 %f1, 0f7F800000; sub.rn.f32 %f2, %x, %x; setp.eq.f32 %p1, %f2, 0f00000000; mul.rn.f32 %f3, "
       "%f1, %f2; selp.f32 %r, %y, %f3, %p1;"},
      {"infinity-minus-infinity", "mov.f32 %f1, 0fFF800000; sub.rn.f32 %r, %f1, %f1;", 1, 1, 2, "sub.rn.f32",
       "mov.f32 %f1, 0fFF800000; max.f32 %r, %f1, %x;"},
      {"division-by-zero", "div.rn.f32 %r, %y, %x;", 1, 1, 0, "div.rn.f32",
       "add.rn.f32 %f1, %x, 0f3F800000; div.rn.f32 %r, %y, %f1;"},
      {"division-by-zero", "rcp.approx.ftz.f32 %r, %x;", 1, 1, 0, "rcp.approx.ftz.f32",
       "max.f32 %f1, %x, %y; rcp.approx.ftz.f32 %r, %f1;"},
      {"conversion-overflow", "cvt.rn.f16.f32 %h1, %x; cvt.f32.f16 %r, %h1;", 1, 1, 70000, "cvt.rn.f16.f32",
       "cvt.rn.bf16.f32 %h1, %x; mov.b32 %b1, {%h2, %h1}; mov.b16 %h2, 0; mov.b32 %b1, {%h2, %h1}; mov.b32 "
       "%r, %b1;"},
      {"accumulation-overflow", "fma.rn.f32 %f1, %x, %x, %y; add.rn.f32 %r, %f1, %y;", 1, 1, 1e30,
       "fma.rn.f32", "mul.rn.f32 %f2, %x, 0f2B800000; fma.rn.f32 %f1, %f2, %f2, %y; add.rn.f32 %r, %f1, %y;"},
      {"negative-argument", "sqrt.rn.f32 %f1, %x; add.rn.f32 %r, %f1, %y;", 1, 1, -4, "sqrt.rn.f32",
       "max.f32 %f2, %x, 0f00000000; sqrt.rn.f32 %f1, %f2; add.rn.f32 %r, %f1, %y;"},
      {"negative-argument", "lg2.approx.f32 %f1, %x; mul.rn.f32 %r, %f1, %y;", 1, 1, -1, "lg2.approx.f32",
       "abs.f32 %f2, %x; lg2.approx.f32 %f1, %f2; mul.rn.f32 %r, %f1, %y;"},
      {"logarithm-of-zero", "lg2.approx.f32 %f1, %x; mul.rn.f32 %r, %f1, %y;", 1, 1, 0, "lg2.approx.f32",
       "add.rn.f32 %f2, %x, %y; lg2.approx.f32 %f1, %f2; mul.rn.f32 %r, %f1, %y;"},
      {"division-by-zero", "sub.rn.f32 %f1, %y, %y; div.rn.f32 %r, %f1, %x;", 1, 1, 0, "div.rn.f32",
       "sub.rn.f32 %f1, %y, %y; setp.eq.f32 %p1, %x, 0f00000000; div.rn.f32 %f2, %f1, %x; selp.f32 %r, %y, "
       "%f2, "
       "%p1;"},
      {"infinity-divided-by-infinity", "mov.f32 %f1, 0f7F800000; div.rn.f32 %r, %f1, %f1;", 1, 1, 2,
       "div.rn.f32", "mov.f32 %f1, 0f7F800000; div.rn.f32 %r, %x, %f1;"},
      {"infinite-argument", "mov.f32 %f1, 0f7F800000; sin.approx.f32 %r, %f1;", 1, 1, 2, "sin.approx.f32",
       "mov.f32 %f1, 0f7F800000; min.f32 %f2, %f1, %x; sin.approx.f32 %r, %f2;"},
      // A sum in memory that overflows: thread 3 adds to its own word.
      {"accumulation-overflow",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; st.shared.f32 [%b1], %x; "
       "red.shared.add.f32 "
       "[%b1], %x; ld.shared.f32 %r, [%b1];",
       1, 1, 3e38, "red.shared.add.f32",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; st.shared.f32 [%b1], %x; neg.f32 %f1, "
       "%x; "
       "red.shared.add.f32 [%b1], %f1; ld.shared.f32 %r, [%b1];"},
      {"infinity-minus-infinity",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; mov.f32 %f1, 0f7F800000; st.shared.f32 "
       "[%b1], "
       "%f1; mov.f32 %f2, 0fFF800000; atom.shared.add.f32 %f3, [%b1], %f2; ld.shared.f32 %r, [%b1];",
       1, 1, 2, "atom.shared.add.f32",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; mov.f32 %f1, 0f7F800000; st.shared.f32 "
       "[%b1], "
       "%f1; atom.shared.exch.b32 %b3, [%b1], %t; ld.shared.f32 %f4, [%b1]; add.rn.f32 %r, %f4, %x;"},
      // Packed halves: only the high one overflows, and only that one is used.
      {"accumulation-overflow",
       "cvt.rn.f16x2.f32 %b1, %x, %y; fma.rn.f16x2 %b2, %b1, %b1, %b1; mov.b32 {%h1, %h2}, %b2; cvt.f32.f16 "
       "%r, %h2;",
       1, 1, 300, "fma.rn.f16x2",
       "cvt.rn.f16x2.f32 %b1, %x, %y; fma.rn.f16x2 %b2, %b1, %b1, %b1; mov.b32 {%h1, %h2}, %b2; cvt.f32.f16 "
       "%r, "
       "%h1;"},
      {"conversion-overflow", "cvt.rn.f16x2.f32 %b1, %x, %y; mov.b32 {%h1, %h2}, %b1; cvt.f32.f16 %r, %h2;",
       1, 1, 70000, "cvt.rn.f16x2.f32",
       "cvt.rn.f16x2.f32 %b1, %x, %y; mov.b32 {%h1, %h2}, %b1; cvt.f32.f16 %r, %h1;"},
      // A tensor-core sum: thread 3 holds row 0, columns 6 and 7; its own column comes from threads 24 to 31.
      {"accumulation-overflow",
       "mov.f32 %f9, 0f7F7FFFFF; mov.u32 %b1, 0x7F7F7F7F; mov.f32 %f1, 0f00000000; "
       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f10,%f11,%f12,%f13}, {%b1,%b1,%b1,%b1}, "
       "{%b1,%b1}, "
       "{%f1,%f1,%f1,%f1}; mov.f32 %r, %f10;",
       1, 1, 2, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
       "mov.u32 %b1, 0x3F803F80; mov.f32 %f1, 0f00000000; "
       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
       "{%f10,%f11,%f12,%f13}, {%b1,%b1,%b1,%b1}, {%b1,%b1}, {%f1,%f1,%f1,%f1}; mov.f32 %r, %f10;"},
      {"literal", "mov.f32 %f1, 0f7FC00000; add.rn.f32 %r, %f1, %x;", 1, 1, 2, "add.rn.f32",
       "mov.f32 %f1, 0fFF800000; max.f32 %r, %f1, %x;"},
      // A library's special case: the choice of the infinity is named, not its first use.
      {"literal",
       "setp.eq.f32 %p1, %x, 0f00000000; selp.f32 %f1, 0fFF800000, %y, %p1; mul.rn.f32 %r, %f1, %y;", 1, 1, 0,
       "selp.f32",
       "setp.eq.f32 %p1, %x, 0f00000000; selp.f32 %f1, 0fFF800000, %y, %p1; max.f32 %r, %f1, %y;"},
      {"input", "add.rn.f32 %f1, %x, %y; mul.rn.f32 %r, %f1, %y;", 1, 1, INFINITY, "add.rn.f32",
       "min.f32 %r, %x, %y;"},
      {"unwritten-memory",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; setp.ne.u32 %p1, %t, 3; @%p1 "
       "st.shared.f32 [%b1], %x; "
       "ld.shared.f32 %f1, [%b1]; add.rn.f32 %r, %f1, %y;",
       1, 1, 2, "add.rn.f32",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; st.shared.f32 [%b1], %x; ld.shared.f32 "
       "%f1, [%b1]; "
       "add.rn.f32 %r, %f1, %y;"},
  };
  return all;
}

OriginOptions quick() {
  OriginOptions o;
  o.machine.threads = 1;
  o.nearest_inputs = 1;
  return o;
}

TEST(Origin, EveryKindIsFoundAtItsInstruction) {
  for (const Twin& twin : twins()) {
    const auto trace = find_origin(elementwise_plan(twin.body),
                                   elementwise_inputs(twin.x, twin.y, twin.special), "o", 3, quick());
    ASSERT_TRUE(trace) << twin.kind << ": no origin";
    const Origin& origin = trace->origin;
    EXPECT_EQ(name_of(origin.kind), twin.kind) << origin.sentence;
    EXPECT_TRUE(origin.instruction.starts_with(std::string(twin.instruction) + " ")) << origin.instruction;
    EXPECT_EQ(origin.thread, (std::array<uint32_t, 3>{3, 0, 0})) << twin.kind;
    EXPECT_EQ(origin.element, "o[t=3]");
    ASSERT_FALSE(origin.chain.empty()) << twin.kind;
    EXPECT_TRUE(origin.chain.back().instruction.starts_with("st.global.f32"))
        << origin.chain.back().instruction;
    EXPECT_NE(origin.sentence.find("elementwise.ptx"), std::string::npos) << origin.sentence;
  }
}

TEST(Origin, AnInputThatIsMultipliedByAnExactZeroIsNoDependency) {
  for (const bool zero : {true, false})
    for (const char* product :
         {"mul.rn.f32 %f1, %y, %f0; add.rn.f32 %f2, %x, %f1;", "fma.rn.f32 %f2, %f0, %y, %x;"}) {
      const std::string factor = zero ? "mov.f32 %f0, 0f00000000; " : "mov.f32 %f0, 0f3F800000; ";
      const auto trace = find_origin(elementwise_plan(factor + product + " ex2.approx.f32 %r, %f2;"),
                                     elementwise_inputs(1, 1, 130), "o", 3, quick());
      ASSERT_TRUE(trace);
      EXPECT_EQ(trace->origin.inputs.size(), zero ? 1u : 2u) << product;
      EXPECT_EQ(trace->origin.inputs.at(0).element, "x[t=3]");
    }
}

TEST(Origin, TheRepairedTwinIsSilent) {
  for (const Twin& twin : twins())
    EXPECT_FALSE(find_origin(elementwise_plan(twin.silent_body),
                             elementwise_inputs(twin.x, twin.y, twin.special), "o", 3, quick()))
        << twin.kind;
}

/// Kernels in which values are not finite on the way, as correct kernels have them.
struct Silence {
  const char *what, *body;
  double special = 2;
};

TEST(Origin, WhatIsMaskedPaddedOrSelectedAwayIsSilent) {
  const Silence all[] = {
      {"a score masked with -inf before its exponential",
       "setp.eq.u32 %p1, %t, 3; mov.f32 %f1, 0fFF800000; selp.f32 %f2, %f1, %x, %p1; ex2.approx.f32 %r, "
       "%f2;"},
      {"a maximum that starts at -inf",
       "mov.f32 %f1, 0fFF800000; max.f32 %f2, %f1, %x; sub.rn.f32 %f3, %f1, %f2; ex2.approx.f32 %r, %f3;"},
      {"a padded lane whose NaN is stored nowhere",
       "mov.f32 %f1, 0f7FC00000; setp.gt.u32 %p1, %t, 15; mov.f32 %r, %x; @%p1 add.rn.f32 %f2, %f1, %x;"},
      {"a NaN selected away",
       "sub.rn.f32 %f1, %x, %x; div.rn.f32 %f2, %f1, %f1; setp.eq.u32 %p1, %t, %t; "
       "selp.f32 %r, %y, %f2, %p1;"},
      {"a maximum that drops a NaN", "mov.f32 %f1, 0f7FC00000; max.f32 %r, %f1, %x;"},
      {"a NaN input that a minimum drops", "min.f32 %r, %x, %y;", NAN},
      {"an infinite input in a lane that is not stored",
       "setp.eq.u32 %p1, %t, 3; add.rn.f32 %f1, %x, %y; selp.f32 %r, %y, %f1, %p1;", INFINITY},
      {"a reciprocal of infinity", "ex2.approx.f32 %f1, 0f43480000; rcp.approx.f32 %r, %f1;"},
      {"a saturating conversion",
       "cvt.rn.satfinite.e4m3x2.f32 %h1, %x, %y; cvt.rn.f16x2.e4m3x2 %b1, %h1; "
       "mov.b32 {%h2, %h3}, %b1; cvt.f32.f16 %r, %h3;",
       1e30},
      {"an overwritten word of shared memory",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; mov.f32 %f1, 0f7FC00000; st.shared.f32 "
       "[%b1], "
       "%f1; st.shared.f32 [%b1], %x; ld.shared.f32 %r, [%b1];"},
  };
  for (const Silence& s : all)
    EXPECT_FALSE(find_origin(elementwise_plan(s.body), elementwise_inputs(1, 1, s.special), "o", 3, quick()))
        << s.what;
}

/// The birth lies in a function that is called; its value comes back through the call's parameters.
TEST(Origin, AnOverflowInACalledFunctionIsFoundThere) {
  Program plan = elementwise_plan(
      "{ .param .f32 a; .param .f32 b; st.param.f32 [a], %x; call.uni (b), grow, (a); ld.param.f32 %f1, [b]; "
      "}\n"
      "mul.rn.f32 %r, %f1, 0f00000000;");
  std::string ptx = *plan.modules[0].ptx;
  const std::string function =
      ".func (.param .f32 result) grow(.param .f32 argument) { .reg .f32 %f<3>; ld.param.f32 %f1, [argument];"
      " ex2.approx.f32 %f2, %f1; st.param.f32 [result], %f2; ret; }\n";
  ptx.insert(ptx.find(".visible"), function);
  plan.modules[0].ptx = std::make_shared<const std::string>(ptx);
  const auto trace = find_origin(plan, elementwise_inputs(1, 1, 130), "o", 3, quick());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->origin.kind, OriginKind::exp_overflow);
  EXPECT_EQ(trace->origin.inputs.at(0).element, "x[t=3]");
  EXPECT_FALSE(find_origin(plan, elementwise_inputs(1, 1, 3), "o", 3, quick()));
}

TEST(Origin, TheInputsAreNamedWithTheirNearestFiniteValues) {
  const auto trace =
      find_origin(elementwise_plan(twins()[0].body), elementwise_inputs(1, 1, 130), "o", 3, quick());
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->origin.inputs.size(), 1u);
  EXPECT_EQ(trace->origin.inputs[0].element, "x[t=3]");
  EXPECT_EQ(trace->origin.inputs[0].value, 130);
  EXPECT_EQ(trace->origin.inputs[0].nearest_finite, "127");
  EXPECT_EQ(trace->nan_kind, OriginKind::zero_times_infinity);
  EXPECT_TRUE(trace->nan_at.instruction.starts_with("mul.rn.f32")) << trace->nan_at.instruction;
  EXPECT_FALSE(trace->origin.infinity_made_at) << "the infinity was made at the origin itself";
}

TEST(Origin, AnElementThatWasNeverStoredIsUnwritten) {
  Program plan = elementwise_plan("mov.f32 %r, %x; setp.eq.u32 %p1, %t, 3; @%p1 ret;");
  const auto trace = find_origin(plan, elementwise_inputs(1, 1, 2), "o", 3, quick());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->origin.kind, OriginKind::unwritten_memory);
  EXPECT_EQ(trace->origin.sentence, "o[t=3] was never written");
}

TEST(Origin, ACopiedInputIsNamed) {
  const auto trace =
      find_origin(elementwise_plan("mov.f32 %r, %x;"), elementwise_inputs(1, 1, NAN), "o", 3, quick());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->origin.kind, OriginKind::input);
  ASSERT_EQ(trace->origin.inputs.size(), 1u);
  EXPECT_EQ(trace->origin.inputs[0].element, "x[t=3]");
}

// The value passes through packing, shared memory, a shuffle and a shift: the birth is still found behind
// them.
TEST(Origin, TagsTravelThroughPackingSharedMemoryShufflesAndShifts) {
  const auto trace = find_origin(elementwise_plan(R"(
  ex2.approx.f32 %f1, %x;
  cvt.rn.bf16.f32 %h1, %f1;
  mov.b16 %h2, 0;
  mov.b32 %b1, {%h1, %h2};
  mov.u32 %b2, tile; shl.b32 %b3, %t, 2; add.s32 %b2, %b2, %b3;
  st.shared.b32 [%b2], %b1;
  ld.shared.u16 %h3, [%b2];
  cvt.u32.u16 %b4, %h3;
  shl.b32 %b5, %b4, 16;
  xor.b32 %b6, %t, 1;
  shfl.sync.bfly.b32 %b7, %b5, 1, 31, -1;
  mov.b32 %f2, %b7;
  mul.rn.f32 %r, %f2, 0f00000000;)"),
                                 elementwise_inputs(1, 1, 130), "o", 2, quick());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->origin.kind, OriginKind::exp_overflow) << trace->origin.sentence;
  EXPECT_EQ(trace->origin.thread[0], 3u);
  EXPECT_EQ(trace->origin.inputs.at(0).element, "x[t=3]");
}

struct TensorCoreForm {
  const char* opcode;  ///< of the birth
  const char* body;    ///< x[3] = Inf meets the zeros of B in row 0, where lane 3's first element lies
};

TEST(Origin, AnInfinityIsFoundInTheOperandsOfEveryTensorCoreForm) {
  const TensorCoreForm forms[] = {
      {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
       "cvt.rn.f16x2.f32 %b1, %x, %x; mov.b32 %b2, 0; mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
       "{%b3,%b4}, "
       "{%b1,%b1,%b1,%b1}, {%b2,%b2}, {%b2,%b2}; mov.b32 {%h1,%h2}, %b3; cvt.f32.f16 %r, %h1;"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
       "mov.b32 %b1, %x; mov.b32 %b2, 0; mov.f32 %f1, %y; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
       "{%r,%f2,%f3,%f4}, {%b1,%b1,%b1,%b1}, {%b2,%b2}, {%f1,%f1,%f1,%f1};"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32",
       // Thread 3 gives the first eight elements of row 0.
       "cvt.rn.bf16x2.f32 %b1, %x, %x; xor.b32 %b2, %t, 3; shl.b32 %b2, %b2, 4; mov.u32 %b3, tile; add.s32 "
       "%b2, %b2, "
       "%b3; st.shared.v4.b32 [%b2], {%b1,%b1,%b1,%b1}; bar.sync 0; mov.b32 %b9, 0; mov.f32 %f1, %y;"
       "wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%b4,%b5,%b6,%b7}, [%b3], 16;"
       "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32 {%r,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, "
       "{%b4,%b5,%b6,%b7}, {%b9,%b9,%b9,%b9}, {%f1,%f1,%f1,%f1,%f1,%f1,%f1,%f1};"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
       // Through stmatrix, ldmatrix and a transposition there and back.
       "cvt.rn.bf16x2.f32 %b1, %x, %x; shl.b32 %b2, %t, 4; mov.u32 %b3, tile; add.s32 %b2, %b2, %b3;"
       "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%b2], {%b1}; bar.sync 0;"
       "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%b4}, [%b2]; movmatrix.sync.aligned.m8n8.trans.b16 "
       "%b5, %b4;"
       "mov.b32 %b6, 0; mov.f32 %f1, %y; mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
       "{%r,%f2,%f3,%f4}, "
       "{%b5,%b5}, {%b6}, {%f1,%f1,%f1,%f1};"},
  };
  for (const TensorCoreForm& form : forms) {
    const auto trace =
        find_origin(elementwise_plan(form.body), elementwise_inputs(1, 1, INFINITY), "o", 3, quick());
    ASSERT_TRUE(trace) << form.opcode;
    EXPECT_EQ(trace->nan_kind, OriginKind::zero_times_infinity)
        << form.opcode << ": " << trace->origin.sentence;
    EXPECT_TRUE(trace->nan_at.instruction.starts_with(form.opcode)) << trace->nan_at.instruction;
    ASSERT_FALSE(trace->origin.inputs.empty()) << form.opcode;
    EXPECT_EQ(trace->origin.inputs[0].element, "x[t=3]") << form.opcode;
    EXPECT_FALSE(find_origin(elementwise_plan(form.body), elementwise_inputs(1, 1, 2), "o", 3, quick()))
        << form.opcode;
  }
}

// B in shared memory: element (k = 3, n = 0) is Inf, A is zero; column 0 is thread 0's first sum.
TEST(Origin, AnInfinityIsFoundInTheSharedOperandOfAWarpgroup) {
  Program plan = elementwise_plan(R"(
  cvt.rn.bf16.f32 %h1, %x;
  mov.u32 %b1, tile; shl.b32 %b2, %t, 1; add.s32 %b2, %b2, %b1; st.shared.b16 [%b2], %h1;
  fence.proxy.async; bar.sync 0;
  and.b32 %b3, %b1, 0x3ffff; shr.u32 %b3, %b3, 4; cvt.u64.u32 %d1, %b3; or.b64 %d1, %d1, 0x1000080000;
  mov.b32 %b4, 0; mov.f32 %r, %y; mov.f32 %f2, %y; mov.f32 %f3, %y; mov.f32 %f4, %y;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r,%f2,%f3,%f4}, {%b4,%b4,%b4,%b4}, %d1, 1, 1, 1, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;)");
  plan.launches[0].block = {128, 1, 1};
  plan.outputs[0].axes[0].size = 128;
  TensorMap inputs;
  for (const char* name : {"x", "y"}) {
    Tensor t(name, Dtype::fp32, {{"T", 128}});
    for (int64_t i = 0; i < t.size(); i++) t.set(i, 1);
    inputs[name] = t;
  }
  EXPECT_FALSE(find_origin(plan, inputs, "o", 0, quick()));
  inputs["x"].set(3, INFINITY);
  const auto trace = find_origin(plan, inputs, "o", 0, quick());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->nan_kind, OriginKind::zero_times_infinity);
  EXPECT_TRUE(trace->nan_at.instruction.starts_with("wgmma.mma_async")) << trace->nan_at.instruction;
  ASSERT_FALSE(trace->origin.inputs.empty());
  EXPECT_EQ(trace->origin.inputs[0].element, "x[t=3]");
}

}  // namespace
}  // namespace assay
