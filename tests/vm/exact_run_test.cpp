// Exact outputs and what they may be off by, on programs of a few instructions.
#include "src/base/vm/exact_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace assay::vm {
namespace {

/// One warp: thread t has %x = x[t], an exact input, and the argument %s; `body` leaves %r, stored to o[t].
Program program_of(const std::string& body, float argument = 1) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 po, .param .f32 ps) {
  .reg .f32 %x, %s, %r, %f<16>;
  .reg .b32 %t, %b<16>;
  .reg .b16 %h<8>;
  .reg .b64 %ax, %ao, %step;
  .reg .pred %p<4>;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  ld.param.f32 %s, [ps];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ao, %ao, %step;
  ld.global.f32 %x, [%ax];
)" + body + "\n  st.global.f32 [%ao], %r;\n  ret;\n}\n";
  Program program;
  program.name = "small";
  program.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 32}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {32, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}, argument}});
  return program;
}

/// x[t] = 1 + 0.37 t, rounded to f32.
TensorMap inputs() {
  Tensor x("x", Dtype::fp32, {{"T", 32}});
  for (int64_t t = 0; t < 32; ++t) x.set(t, static_cast<float>(1 + 0.37 * static_cast<double>(t)));
  return {{"x", x}};
}

ExactRun run_of(const Program& program) {
  return run_exact(program, inputs(), {});
}
ExactOutput exact_of(const Program& program) {
  return run_of(program).outputs.at("o");
}

constexpr float kLog2e = 0x1.715476p+0f;

TEST(ExactRun, RoundingsHaveNoPart) {
  const ExactOutput o =
      exact_of(program_of("mul.rn.f32 %f1, %x, %x; cvt.rn.bf16.f32 %h1, %f1;"
                          "cvt.f32.bf16 %f2, %h1; fma.rn.f32 %r, %f2, %x, %f1;"));
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double x = given.at("x").value(static_cast<int64_t>(t)), expected = x * x * x + x * x;
    EXPECT_LE(std::fabs(o.value[t] - expected), o.slack[t] + 0x1p-50 * expected) << t;
    EXPECT_LE(o.slack[t], 0x1p-40 * expected) << t;
  }
}

TEST(ExactRun, ARoundedLiteralMayBeOffByOneAndAHalfUnitsInTheLastPlace) {
  const ExactOutput o = exact_of(program_of("mul.rn.f32 %r, %x, 0f3FB8AA3B;"));
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double x = given.at("x").value(static_cast<int64_t>(t));
    EXPECT_LE(std::fabs(o.value[t] - x * std::numbers::log2e), o.slack[t]) << t;
    EXPECT_NEAR(o.slack[t], 1.5 * 0x1p-23 * static_cast<double>(kLog2e) * x, 0x1p-40 * x) << t;
  }
}

TEST(ExactRun, WhatCancelsInTheFormulaCancelsInTheSlack) {
  // e^x e^-x, both by log2 e.
  const ExactOutput o = exact_of(
      program_of("mul.rn.f32 %f1, %x, 0f3FB8AA3B; mul.rn.f32 %f2, %x, 0fBFB8AA3B; ex2.approx.f32 %f3, %f1;"
                 "ex2.approx.f32 %f4, %f2; mul.rn.f32 %r, %f3, %f4;"));
  for (size_t t = 0; t < 32; ++t) {
    EXPECT_LE(std::fabs(o.value[t] - 1), o.slack[t]) << t;
    EXPECT_LE(o.slack[t], 0x1p-40) << t;
  }
}

TEST(ExactRun, ShortConstantsMeanThemselves) {
  for (const char* literal : {"0f3F000000", "0f3D800000", "0f437F0000", "0f447A0000"}) {
    const ExactOutput o = exact_of(program_of(fmt::format("mul.rn.f32 %r, %x, {};", literal)));
    for (size_t t = 0; t < 32; ++t) EXPECT_LE(o.slack[t], 0x1p-40 * o.value[t]) << literal;
  }
}

TEST(ExactRun, AnArgumentInFp32IsAConstantToo) {
  for (const float argument : {0.25f, 0.3f}) {
    const ExactOutput o = exact_of(program_of("mul.rn.f32 %r, %x, %s;", argument));
    const TensorMap given = inputs();
    for (size_t t = 0; t < 32; ++t) {
      const double x = given.at("x").value(static_cast<int64_t>(t));
      EXPECT_NEAR(o.slack[t], argument == 0.25f ? 0 : 1.5 * 0x1p-23 * 0.3 * x, 0x1p-40 * x) << argument;
    }
  }
}

TEST(ExactRun, AnArgumentIsAConstantWhateverItsSizeAndHoweverShortItLooks) {
  for (const float argument : {0x1.9ap-4f, 1.3e-20f, 1.7e13f}) {
    const ExactOutput o = exact_of(program_of("mul.rn.f32 %r, %x, %s;", argument));
    const TensorMap given = inputs();
    for (size_t t = 0; t < 32; ++t) {
      const double exact = given.at("x").value(static_cast<int64_t>(t)) * static_cast<double>(argument);
      EXPECT_NEAR(o.slack[t], 1.5 * 0x1p-23 * exact, 0x1p-40 * exact) << argument;
    }
  }
}

TEST(ExactRun, WhatASeriesLeavesOutIsSlackAndAnAffineFunctionIsNone) {
  // 1/6 y + 1/2, then times y plus 1: the next term is y^3 / 24. 1.001 y + 1e-9 goes no further.
  const std::string y = "mul.rn.f32 %f1, %x, 0f3B800000;";
  const ExactOutput series = exact_of(program_of(
      y +
      "fma.rn.f32 %f2, %f1, 0f3E2AAAAB, 0f3F000000; fma.rn.f32 %f3, %f2, %f1, 0f3F800000; mov.f32 %r, %f3;"));
  const ExactOutput affine = exact_of(program_of(y + "fma.rn.f32 %r, %f1, 0f3F8020C5, 0f3089705F;"));
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double at = given.at("x").value(static_cast<int64_t>(t)) / 256;
    EXPECT_GE(series.slack[t], at * at * at / 24) << t;
    EXPECT_LE(series.slack[t], at * at / 6 / 7) << t;
    EXPECT_LE(affine.slack[t], 4e-7 * at) << t;
  }
}

TEST(ExactRun, NothingIsSaidBehindIntegerWorkOnARoundedFloat) {
  const char* on_bits =
      "mov.b32 %b1, %f1; xor.b32 %b2, %b1, 0x00700000; mov.b32 %f2, %b2; add.rn.f32 %r, %f2, 0f40000000;";
  const ExactOutput exact = exact_of(program_of(std::string("mov.f32 %f1, %x;") + on_bits));
  const ExactOutput rounded = exact_of(program_of(std::string("mul.rn.f32 %f1, %x, %x;") + on_bits));
  for (size_t t = 1; t < 32; ++t) {
    EXPECT_LE(exact.slack[t], 0x1p-40 * exact.value[t]) << t;
    const double square = std::pow(inputs().at("x").value(static_cast<int64_t>(t)), 2);
    EXPECT_EQ(std::isinf(rounded.slack[t]), static_cast<double>(static_cast<float>(square)) != square) << t;
  }
}

TEST(ExactRun, IntegerWorkThatRoundsIsARounding) {
  // Cut to bf16 by a mask; rounded to tf32 by an addition and a mask; moved down as 16 bits and up again.
  for (const char* rounds :
       {"and.b32 %b2, %b1, 0xffff0000;", "add.s32 %b2, %b1, 4096; and.b32 %b2, %b2, 0xffffe000;",
        "shr.u32 %b3, %b1, 16; shl.b32 %b2, %b3, 16;"}) {
    const ExactOutput o = exact_of(program_of(std::string("mul.rn.f32 %f1, %x, %x; mov.b32 %b1, %f1;") +
                                              rounds + "mov.b32 %f2, %b2; add.rn.f32 %r, %f2, %x;"));
    const TensorMap given = inputs();
    for (size_t t = 0; t < 32; ++t) {
      const double x = given.at("x").value(static_cast<int64_t>(t)), expected = x * x + x;
      EXPECT_LE(std::fabs(o.value[t] - expected), o.slack[t] + 0x1p-46 * expected) << rounds << t;
      EXPECT_LE(o.slack[t], 0x1p-40 * expected) << rounds << t;
    }
  }
}

TEST(ExactRun, NothingIsSaidBehindAnAtomicSum) {
  const ExactOutput o =
      exact_of(program_of("st.global.f32 [%ao], 0f00000000; mul.rn.f32 %f1, %x, %x;"
                          "atom.global.add.f32 %f2, [%ao], %f1; ld.global.f32 %r, [%ao];"));
  for (size_t t = 0; t < 32; ++t) EXPECT_TRUE(std::isinf(o.slack[t])) << t;
}

TEST(ExactRun, ComparisonsThatRoundingTurnsAreCounted) {
  // x * x against its own bf16: the same number on real numbers, mostly another in the machine.
  const std::string rounded = "mul.rn.f32 %f1, %x, %x; cvt.rn.bf16.f32 %h1, %f1; cvt.f32.bf16 %f2, %h1;";
  const ExactRun turned =
      run_of(program_of(rounded + "setp.gt.f32 %p1, %f2, %f1; selp.f32 %r, %f1, %f2, %p1;"));
  EXPECT_GE(turned.turned, 20u);
  EXPECT_EQ(turned.branches_turned, 0u);
  const ExactRun branch = run_of(program_of(
      rounded + "mov.f32 %r, %f1; setp.gt.f32 %p1, %f2, %f1; @%p1 bra $end; mov.f32 %r, %f2; $end:"));
  EXPECT_GE(branch.branches_turned, 20u);
  const ExactRun sure =
      run_of(program_of(rounded + "setp.gt.f32 %p1, %f2, 0f00000000; selp.f32 %r, %f1, %f2, %p1;"));
  EXPECT_EQ(sure.turned, 0u);
}

TEST(ExactRun, ATurnedSelectionGivesWhatRealNumbersSelect) {
  // The larger of x * x, cut down to bf16, and x * x - 2^-20: always the first on real numbers.
  const ExactOutput o =
      exact_of(program_of("mul.rn.f32 %f1, %x, %x; mov.b32 %b1, %f1; and.b32 %b1, %b1, 0xffff0000;"
                          "mov.b32 %f2, %b1; sub.rn.f32 %f3, %f1, 0f35800000;"
                          "setp.gt.f32 %p1, %f3, %f2; selp.f32 %r, %f3, %f2, %p1;"));
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double x = given.at("x").value(static_cast<int64_t>(t));
    EXPECT_LE(std::fabs(o.value[t] - x * x), o.slack[t] + 0x1p-46 * x * x) << t;
  }
}

TEST(ExactRun, EqualHalvesOfOneWordKeepTheirOwnShadows) {
  // Two products whose bf16 are mostly equal, packed by integer work, and the high one taken out again.
  const std::string packed = R"(
  add.rn.f32 %f1, %x, 0f3A000000; mul.rn.f32 %f1, %f1, %x; mul.rn.f32 %f2, %x, %x;
  cvt.rn.bf16.f32 %h1, %f1; cvt.rn.bf16.f32 %h2, %f2;
  mov.b32 %b1, {%h1, %h2}; )";
  const TensorMap given = inputs();
  for (const bool high : {false, true})
    for (const char* take : {"shl.b32 %b2, %b1, 16;", "prmt.b32 %b2, %b1, 0, 0x1044;"}) {
      const std::string taken = high ? "and.b32 %b2, %b1, 0xffff0000;" : take;
      const ExactOutput o = exact_of(program_of(packed + taken + "mov.b32 %r, %b2;"));
      for (size_t t = 0; t < 32; ++t) {
        const double x = given.at("x").value(static_cast<int64_t>(t)),
                     other = high ? x * x : (x + 0x1p-11) * x;
        EXPECT_LE(std::fabs(o.value[t] - other), o.slack[t] + 0x1p-46 * other) << taken << t;
        EXPECT_LE(o.slack[t], 0x1p-40 * other) << taken << t;
      }
    }
}

TEST(ExactRun, ThreadsDoNotMatter) {
  const Program program = program_of("mul.rn.f32 %f1, %x, 0f3FB8AA3B; ex2.approx.f32 %r, %f1;");
  const ExactRun one = run_exact(program, inputs(), {.threads = 1}),
                 four = run_exact(program, inputs(), {.threads = 4});
  EXPECT_EQ(one.outputs.at("o").value, four.outputs.at("o").value);
  EXPECT_EQ(one.outputs.at("o").slack, four.outputs.at("o").slack);
}

}  // namespace
}  // namespace assay::vm
