#include <gtest/gtest.h>

#include "src/verification/diagnosis/origin.h"
#include "tests/diagnosis/elementwise_kernel.h"

namespace assay {
namespace {

/// Whether the zero that meets e^x = Inf is held to be a select's.
bool selected(const std::string& zero) {
  const Program plan = elementwise_plan("ex2.approx.f32 %f1, %x;\n" + zero + "\nmul.rn.f32 %r, %f1, %f2;");
  const auto trace = find_origin(plan, elementwise_inputs(1, 1, 200), "o", 3);
  EXPECT_TRUE(trace) << zero;
  if (!trace) return false;
  EXPECT_EQ(trace->nan_kind, OriginKind::zero_times_infinity) << zero;
  return trace->zero_selected;
}

TEST(OperandHistory, ASelectedZeroIsFollowedThroughConversionsMemoryAndProducts) {
  const std::string chosen = "setp.gt.f32 %p1, %x, 0f42FE0000; selp.f32 %f3, 0f00000000, %y, %p1;\n";
  EXPECT_TRUE(selected(chosen + "mov.f32 %f2, %f3;"));
  EXPECT_TRUE(selected(
      chosen + "cvt.rn.bf16.f32 %h1, %f3; mov.b16 %h2, 0; mov.b32 %b1, {%h2, %h1}; mov.b32 %f2, %b1;"));
  EXPECT_TRUE(selected(chosen + "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; "
                                "st.shared.f32 [%b1], %f3; ld.shared.f32 %f2, [%b1];"));
  EXPECT_TRUE(selected(chosen + "mul.rn.f32 %f2, %f3, %y;"));
}

TEST(OperandHistory, ASelectedZeroIsNoneThatArithmeticMadeOrAnInputHeld) {
  EXPECT_FALSE(selected("sub.rn.f32 %f2, %y, %y;"));
  EXPECT_FALSE(selected("neg.f32 %f3, %x; mul.rn.f32 %f3, %f3, 0f42C80000; ex2.approx.f32 %f2, %f3;"))
      << "an underflow";
  EXPECT_FALSE(
      selected("setp.gt.f32 %p1, %x, 0f42FE0000; sub.rn.f32 %f4, %y, %y; selp.f32 %f2, %f4, %y, %p1;"))
      << "a select that took a computed zero";
}

/// Whether the zero is held to be a select's that meets the NaN of Inf - Inf, as which the low part of an Inf
/// enters a tensor-core sum.
bool selected_beside_low_part(const std::string& zero) {
  const Program plan = elementwise_plan(
      "ex2.approx.f32 %f1, %x;\nsub.rn.f32 %f3, %f1, %f1;\nmov.b32 %b1, %f3;\n" + zero +
      "\nmov.b32 %b2, %f2; mov.f32 %f4, %y; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%r,%f2,%f3,%f5}, {%b1,%b1,%b1,%b1}, {%b2,%b2}, {%f4,%f4,%f4,%f4};");
  const auto trace = find_origin(plan, elementwise_inputs(1, 1, 200), "o", 3);
  EXPECT_TRUE(trace) << zero;
  if (!trace) return false;
  EXPECT_EQ(trace->nan_kind, OriginKind::infinity_minus_infinity) << zero;
  EXPECT_EQ(trace->zero_selected, trace->masked_at.instruction.starts_with("mma.sync")) << zero;
  return trace->zero_selected;
}

TEST(OperandHistory, ASelectedZeroIsFoundBesideTheLowPartOfAnInfinityToo) {
  EXPECT_TRUE(
      selected_beside_low_part("setp.gt.f32 %p1, %y, 0f00000000; selp.f32 %f2, 0f00000000, %y, %p1;"));
  EXPECT_FALSE(selected_beside_low_part("sub.rn.f32 %f2, %y, %y;"));
  EXPECT_FALSE(
      selected_beside_low_part("setp.lt.f32 %p1, %y, 0f00000000; selp.f32 %f2, 0f00000000, %y, %p1;"))
      << "a live lane";
}

/// The origin's opcode where o[3] is made of what o[3] held before.
std::string origin_after(const std::string& before) {
  const Program plan = elementwise_plan(
      before + "ld.global.f32 %f1, [%ao];\n mul.rn.f32 %f2, %f1, %y; add.rn.f32 %r, %f2, %x;");
  const auto trace = find_origin(plan, elementwise_inputs(1, 1, 2), "o", 3);
  return trace ? trace->origin.instruction.substr(0, trace->origin.instruction.find(' ')) : "none";
}

TEST(OperandHistory, MemoryThatNothingWroteIsTracedToTheInstructionThatReadIt) {
  EXPECT_EQ(origin_after(""), "ld.global.f32");
  EXPECT_EQ(origin_after("st.global.f32 [%ao], %y;"), "none");
}

/// What the divisor of y / (what `divisor` makes of x = -200 and y = 1) is made of.
std::optional<ZeroDivisor> divisor_of(const std::string& divisor) {
  const Program plan = elementwise_plan(divisor + "\ndiv.rn.f32 %r, %y, %f1;");
  const auto trace = find_origin(plan, elementwise_inputs(1, 1, -200), "o", 3);
  return trace ? trace->divisor : std::nullopt;
}

TEST(OperandHistory, ADivisorThatIsZeroIsMadeOfItsOwnInputsAndPerhapsOfVanishedExponentials) {
  const auto vanished = divisor_of("ex2.approx.f32 %f2, %x; add.rn.f32 %f1, %f2, 0f00000000;");
  ASSERT_TRUE(vanished);
  EXPECT_EQ(vanished->inputs, std::set<std::string>{"x"});
  EXPECT_TRUE(vanished->exponentials_vanished);
  const auto difference =
      divisor_of("ex2.approx.f32 %f2, %y; sub.rn.f32 %f3, %f2, %f2; mul.rn.f32 %f1, %f3, %x;");
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->inputs, (std::set<std::string>{"x", "y"}));
  EXPECT_FALSE(difference->exponentials_vanished) << "2^1 is left";
}

/// The kind of the origin of 2^(some exponent), made in two factors.
std::string kind_of_product(const std::string& power) {
  const Program plan = elementwise_plan(
      power +
      "cvt.rni.s32.f32 %b1, %x; shl.b32 %b2, %b1, 23; add.s32 %b3, %b2, 1065353216; mov.b32 %f4, %b3;\n"
      "mul.rn.f32 %f5, %f3, %f4; mul.rn.f32 %r, %f5, %f4;");
  const auto trace = find_origin(plan, elementwise_inputs(1, 0.5, 100), "o", 3);
  return trace ? std::string(name_of(trace->origin.kind)) : "none";
}

TEST(OperandHistory, AnExponentialMadeOfASeriesAndPowersOfTwoIsOne) {
  EXPECT_EQ(kind_of_product("fma.rn.f32 %f3, %y, %y, 0f3F800000;\n"), "exp-overflow");
  EXPECT_EQ(kind_of_product("mov.f32 %f2, 0f3F800000; fma.rn.f32 %f3, %y, %y, %f2;\n"), "exp-overflow");
  EXPECT_EQ(kind_of_product("fma.rn.f32 %f3, %y, %y, 0f40000000;\n"), "accumulation-overflow");
}

}  // namespace
}  // namespace assay
