// Comparisons that come out otherwise on real numbers: counted, and what they decide followed or lost.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/vm/exact_program.h"

namespace assay::vm {
namespace {

TEST(TurnedComparison, ComparisonsThatRoundingTurnsAreCounted) {
  // x * x against its own bf16: the same number on real numbers, mostly another in the machine.
  const std::string rounded = "mul.rn.f32 %f1, %x, %x; cvt.rn.bf16.f32 %h1, %f1; cvt.f32.bf16 %f2, %h1;";
  const ExactRun turned =
      run_of(program_of(rounded + "setp.ne.f32 %p1, %f2, %f1; selp.f32 %r, %f1, %f2, %p1;"));
  EXPECT_GE(turned.turned, 20u);
  EXPECT_EQ(turned.branches_turned, 0u);
  const ExactRun branch = run_of(program_of(
      rounded + "mov.f32 %r, %f1; setp.ne.f32 %p1, %f2, %f1; @%p1 bra $end; mov.f32 %r, %f2; $end:"));
  EXPECT_GE(branch.branches_turned, 20u);
  const ExactRun sure =
      run_of(program_of(rounded + "setp.gt.f32 %p1, %f2, 0f00000000; selp.f32 %r, %f1, %f2, %p1;"));
  EXPECT_EQ(sure.turned, 0u);
}

// Two numbers that the machine mostly has alike: the larger one is that on real numbers, whichever is asked.
TEST(TurnedComparison, AComparisonIsTurnedByWhatItAsksNotByTheOrderAlone) {
  const std::string alike =
      "mul.rn.f32 %f1, %x, %x; add.rn.f32 %f2, %f1, 0f3A000000; cvt.rn.bf16.f32 %h1, %f1;"
      "cvt.rn.bf16.f32 %h2, %f2; cvt.f32.bf16 %f3, %h1; cvt.f32.bf16 %f4, %h2;";
  const TensorMap given = inputs();
  for (const auto& [larger, turned] :
       {std::pair{"setp.gt.f32 %p1, %f3, %f4; selp.f32 %r, %f3, %f4, %p1;", false},
        {"setp.le.f32 %p1, %f3, %f4; selp.f32 %r, %f4, %f3, %p1;", false},
        {"setp.gt.f32 %p1, %f4, %f3; selp.f32 %r, %f4, %f3, %p1;", true},
        {"setp.ge.f32 %p1, %f3, %f4; selp.f32 %r, %f3, %f4, %p1;", true}}) {
    const ExactRun run = run_of(program_of(alike + larger));
    EXPECT_EQ(run.turned > 0, turned) << larger;
    for (size_t t = 0; t < 32; ++t) {
      const double x = given.at("x").value(static_cast<int64_t>(t));
      EXPECT_NEAR(run.outputs.at("o").value[t], x * x + 0x1p-11, 0x1p-40) << larger << t;
    }
  }
}

void expect_squares(const ExactOutput& o) {
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double x = given.at("x").value(static_cast<int64_t>(t));
    EXPECT_LE(std::fabs(o.value[t] - x * x), o.slack[t] + 0x1p-46 * x * x) << t;
  }
}

TEST(TurnedComparison, ATurnedSelectionGivesWhatRealNumbersSelect) {
  // The larger of x * x, cut down to bf16, and x * x - 2^-20: always the first on real numbers.
  const ExactOutput o =
      exact_of(program_of("mul.rn.f32 %f1, %x, %x; mov.b32 %b1, %f1; and.b32 %b1, %b1, 0xffff0000;"
                          "mov.b32 %f2, %b1; sub.rn.f32 %f3, %f1, 0f35800000;"
                          "setp.gt.f32 %p1, %f3, %f2; selp.f32 %r, %f3, %f2, %p1;"));
  expect_squares(o);
}

TEST(TurnedComparison, ATurnedSelectionMayBeOffByTheConstantsOfWhatItGives) {
  const ExactOutput o = exact_of(program_of(
      "mul.rn.f32 %f1, %x, %x; mov.b32 %b1, %f1; and.b32 %b1, %b1, 0xffff0000; mov.b32 %f2, %b1;"
      "sub.rn.f32 %f3, %f1, 0f35800000; setp.gt.f32 %p1, %f3, %f2;"
      "mul.rn.f32 %f2, %f2, 0f3FB8AA3B; mul.rn.f32 %f3, %f3, 0f3FB8AA3B; selp.f32 %r, %f3, %f2, %p1;"));
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double x = given.at("x").value(static_cast<int64_t>(t)), expected = x * x * std::numbers::log2e;
    EXPECT_LE(std::fabs(o.value[t] - expected), o.slack[t]) << t;
    EXPECT_LE(o.slack[t], 0x1p-22 * expected) << t;
  }
}

// A guard, a lost address, a predicate made of others: what may come out otherwise is lost, the rest is not.
TEST(TurnedComparison, WhatATurnedComparisonDecidesIsLostAndNothingElse) {
  const std::string turned =
      "mul.rn.f32 %f1, %x, %x; cvt.rn.bf16.f32 %h1, %f1; cvt.f32.bf16 %f2, %h1; setp.ne.f32 %p1, %f2, %f1;";
  for (const char* decides : {
           "mov.f32 %r, %x; @%p1 mov.f32 %r, %f1;",
           "setp.gt.f32 %p2, %x, 0f00000000; and.pred %p3, %p1, %p2; mov.f32 %r, %x; @!%p3 mov.f32 %r, %f1;",
           "selp.b32 %b1, 0, 1, %p1; cvt.rn.f32.u32 %r, %b1;",
           "vote.sync.ballot.b32 %b1, %p1, -1; cvt.rn.f32.u32 %r, %b1;",
           "mov.f32 %r, %x; @%p1 bra $end; mov.f32 %r, %f1; $end:",
       }) {
    const ExactRun run = run_of(program_of(turned + decides));
    int lost = 0;
    for (const double slack : run.outputs.at("o").slack) lost += std::isinf(slack);
    EXPECT_GE(lost, 20) << decides;
    EXPECT_FALSE(run.loss.empty()) << decides;
  }
  const ExactRun dead = run_of(program_of(turned + "selp.b32 %b1, 0, 1, %p1; mov.f32 %r, %f1;"));
  EXPECT_GE(dead.turned, 20u);
  for (const double slack : dead.outputs.at("o").slack) EXPECT_LE(slack, 0x1p-40);
}

TEST(TurnedComparison, ATurnedSelectionOfBitsIsOneOfFloats) {
  const ExactOutput o =
      exact_of(program_of("mul.rn.f32 %f1, %x, %x; mov.b32 %b1, %f1; and.b32 %b2, %b1, 0xffff0000;"
                          "mov.b32 %f2, %b2; sub.rn.f32 %f3, %f1, 0f35800000; mov.b32 %b3, %f3;"
                          "setp.gt.f32 %p1, %f3, %f2; selp.b32 %b1, %b3, %b2, %p1; mov.b32 %r, %b1;"));
  expect_squares(o);
}

}  // namespace
}  // namespace assay::vm
