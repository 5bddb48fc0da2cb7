// Exact outputs and what they may be off by, on programs of a few instructions.
#include "src/base/vm/exact_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "src/base/vm/shadow_pass.h"
#include "tests/vm/exact_program.h"

namespace assay::vm {
namespace {

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

/// (x 2^20) log2 e - ((x 2^20) log2 e - 3/16 log2 e): of the slack less is left than a float has digits for.
TEST(ExactRun, SlackHasTheDigitsOfADoubleWhereMuchOfItCancels) {
  const ExactOutput o = exact_of(program_of(
      "mul.rn.f32 %f1, %x, 0f49800000; mul.rn.f32 %f2, %f1, 0f3FB8AA3B; fma.rn.f32 %f3, %f1, 0f3FB8AA3B,"
      "0f00000000; mov.f32 %f5, 0f3E400000; mul.rn.f32 %f6, %f5, 0f3FB8AA3B; sub.rn.f32 %f4, %f3, %f6;"
      "sub.rn.f32 %r, %f2, %f4;"));
  const double expected = 1.5 * 0x1p-23 * static_cast<double>(kLog2e) * 0.1875;
  for (size_t t = 0; t < 32; ++t) EXPECT_NEAR(o.slack[t], expected, 1e-3 * expected) << t;
}

/// 4 x^2 (x log2 e) of a tensor core less the same by products: what the operands' roundings are is no
/// slope; the sums are 134.
TEST(ExactRun, SlackOfATensorCoreHasTheDigitsOfADouble) {
  const ExactOutput o = exact_of(program_of(
      "shfl.sync.idx.b32 %x, %x, 5, 31, -1; mul.rn.f32 %f1, %x, %x; mul.rn.f32 %f2, %x, 0f3FB8AA3B;"
      "mov.b32 %b1, %f1; mov.b32 %b2, %f2; mov.f32 %f4, 0f00000000;"
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f5, %f6, %f7, %f8}, {%b1, %b1}, {%b2},"
      "{%f4, %f4, %f4, %f4}; mul.rn.f32 %f3, %f1, %f2; fma.rn.f32 %r, %f3, 0fC0800000, %f5;"));
  for (size_t t = 0; t < 32; ++t) EXPECT_LE(o.slack[t], 0x1p-53 * 134) << t;
}

/// The second sum of squares knows no constant: what the first one's operands depended on is forgotten.
TEST(ExactRun, ATensorCoreForgetsThePartsOfTheOneBefore) {
  const ExactOutput o = exact_of(
      program_of("mul.rn.f32 %f2, %x, 0f3FB8AA3B; mov.b32 %b1, %x; mov.b32 %b2, %f2; mov.f32 %f4, 0f00000000;"
                 "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f5, %f6, %f7, %f8}, {%b2, %b2}, {%b2},"
                 "{%f4, %f4, %f4, %f4};"
                 "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r, %f6, %f7, %f8}, {%b1, %b1}, {%b1},"
                 "{%f4, %f4, %f4, %f4};"));
  for (size_t t = 0; t < 32; ++t) EXPECT_LE(o.slack[t], 0x1p-40 * o.value[t]) << t;
}

TEST(ExactRun, NothingIsCountedOfTheOps) {
  const Pass pass(program_of("mul.rn.f32 %r, %x, 0f3FB8AA3B;"), inputs(), {}, {.strict = true});
  EXPECT_TRUE(pass.launches.at(0).ops.empty());
  const Pass counts(program_of("mul.rn.f32 %r, %x, 0f3FB8AA3B;"), inputs(), {}, {});
  EXPECT_FALSE(counts.launches.at(0).ops.empty());
}

// The product's slopes are those at the exact factors, also where it takes a factor's register.
TEST(ExactRun, AProductInItsFactorsPlaceIsThatInAnother) {
  const ExactOutput o =
      exact_of(program_of("mul.rn.f32 %f1, %x, %x; mul.rn.f32 %f2, %x, 0f3FB8AA3B; mul.rn.f32 %f3, %f1, %f2;"
                          "mul.rn.f32 %f1, %f1, %f2; sub.rn.f32 %r, %f1, %f3;"));
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double x = given.at("x").value(static_cast<int64_t>(t));
    EXPECT_LE(o.slack[t], 0x1p-48 * x * x * x) << t;
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

TEST(ExactRun, AnArgumentThatSaysWhatItStandsForIsThat) {
  Program program = program_of("mul.rn.f32 %r, %x, %s;");
  program.launches[0].arguments[2] = Argument::rounded(1 / std::sqrt(24.0));
  const ExactOutput o = exact_of(program);
  const TensorMap given = inputs();
  for (size_t t = 0; t < 32; ++t) {
    const double exact = given.at("x").value(static_cast<int64_t>(t)) / std::sqrt(24.0);
    EXPECT_LE(std::fabs(o.value[t] - exact), 0x1p-50 * exact) << t;
    EXPECT_LE(o.slack[t], 0x1p-45 * exact) << t;
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

/// Ways on which the bits of %f1 = x * x, or of its bf16 in %h1, reach %r unchanged or rounded: the exact
/// value is x * x still, or nothing is said.
struct Way {
  const char* body;
  bool followed;
};
constexpr Way kWays[] = {
    {"mov.b32 %b1, {%h1, %h1}; xor.b32 %b1, %b1, 0x80008000; xor.b32 %b1, %b1, 0x80008000;"
     "mov.b32 {%h2, %h3}, %b1; cvt.f32.bf16 %r, %h3;",
     true},
    {"xor.b16 %h2, %h1, 0x8000; xor.b16 %h2, %h2, 0x8000; cvt.f32.bf16 %r, %h2;", true},
    {"mov.b32 %b1, %f1; xor.b32 %b1, %b1, 0x80000000; and.b32 %b1, %b1, 0x7fffffff; mov.b32 %r, %b1;", true},
    {"mov.b32 %b1, {%h1, %h1}; mov.b64 %step, {%b1, %b1}; mov.b64 {%b2, %b3}, %step;"
     "shl.b32 %b2, %b3, 16; mov.b32 %r, %b2;",
     true},
    // Cut to bf16 by taking the word apart, rounded to it by integers before.
    {"mov.b32 %b1, %f1; mov.b32 {%h2, %h3}, %b1; cvt.f32.bf16 %r, %h3;", true},
    {"mov.b32 %b1, %f1; shr.u32 %b2, %b1, 16; cvt.u16.u32 %h2, %b2; cvt.f32.bf16 %r, %h2;", true},
    {"mov.b32 %b1, %f1; bfe.u32 %b2, %b1, 16, 1; add.s32 %b2, %b2, 32767; add.s32 %b2, %b1, %b2;"
     "mov.b32 {%h2, %h3}, %b2; cvt.f32.bf16 %r, %h3;",
     true},
    // In the high half alone, beside one that is what it seems.
    {"mov.b16 %h4, 0; mov.b32 %b1, {%h4, %h1}; shr.u32 %b2, %b1, 16; cvt.u16.u32 %h2, %b2;"
     "cvt.f32.bf16 %r, %h2;",
     true},
    // What is read where a rounded number's bits say.
    {"mov.b32 %b1, %f1; and.b32 %b1, %b1, 31; mul.wide.u32 %step, %b1, 4; ld.param.u64 %ax, [px];"
     "add.s64 %ax, %ax, %step; ld.global.f32 %f2, [%ax]; sub.rn.f32 %f3, %f2, %f2; add.rn.f32 %r, %f1, %f3;",
     false},
    // Bytes, halves of an f32 in memory, words among 64 bits, exchanges.
    {"mov.b32 %b1, %f1; cvt.u64.u32 %step, %b1; shl.b64 %step, %step, 32; shr.u64 %step, %step, 32;"
     "cvt.u32.u64 %b2, %step; mov.b32 %r, %b2;",
     false},
    {"st.global.f32 [%ao], %f1; ld.global.u16 %h2, [%ao+2]; cvt.f32.bf16 %r, %h2;", false},
    {"st.global.f32 [%ao], %f1; ld.global.u8 %b1, [%ao+3]; shl.b32 %b1, %b1, 24; ld.global.u8 %b2, [%ao+2];"
     "shl.b32 %b2, %b2, 16; or.b32 %b1, %b1, %b2; mov.b32 %r, %b1;",
     false},
    {"st.global.f32 [%ao], 0f00000000; mov.b32 %b1, %f1; atom.global.exch.b32 %b2, [%ao], %b1;"
     "ld.global.f32 %r, [%ao];",
     false},
    {"st.global.f32 [%ao], 0f00000000; mov.b32 %b1, %f1; atom.global.cas.b32 %b2, [%ao], 0, %b1;"
     "ld.global.f32 %r, [%ao];",
     false},
    // The larger of two by their bits, rounded ones both.
    {"mov.b32 %b1, %f1; add.rn.f32 %f2, %f1, 0f2F800000; mov.b32 %b2, %f2; max.s32 %b1, %b1, %b2;"
     "mov.b32 %r, %b1;",
     false},
    // To eight bits and back.
    {"cvt.rn.satfinite.e4m3x2.f32 %h2, %f1, %f1; cvt.rn.f16x2.e4m3x2 %b1, %h2; mov.b32 {%h2, %h3}, %b1;"
     "cvt.f32.f16 %r, %h2;",
     false},
    // An exact zero takes what is lost away; a choice of the sign, the exponent, the next integer stays.
    {"mov.b32 %b1, %f1; xor.b32 %b1, %b1, 0x00700000; mov.b32 %f2, %b1; mul.rn.f32 %f2, %f2, 0f00000000;"
     "add.rn.f32 %r, %f1, %f2;",
     true},
    {"cvt.rni.s32.f32 %b1, %f1; cvt.rn.f32.s32 %f2, %b1; sub.rn.f32 %f3, %f1, %f2; add.rn.f32 %r, %f3, %f2;",
     true},
    {"mov.b32 %b1, %f1; and.b32 %b1, %b1, 0x7f800000; mov.b32 %f2, %b1; sub.rn.f32 %f3, %f1, %f2;"
     "add.rn.f32 %r, %f3, %f2;",
     true},
};

TEST(ExactRun, WhatBitsCarryIsFollowedOrSaidToBeLost) {
  const TensorMap given = inputs();
  for (const Way& way : kWays) {
    const ExactRun run =
        run_of(program_of(std::string("mul.rn.f32 %f1, %x, %x; cvt.rn.bf16.f32 %h1, %f1;") + way.body));
    const ExactOutput& o = run.outputs.at("o");
    int judged = 0;
    for (size_t t = 0; t < 32; ++t) {
      const double x = given.at("x").value(static_cast<int64_t>(t));
      judged += std::isfinite(o.slack[t]);
      EXPECT_LE(std::fabs(o.value[t] - x * x), o.slack[t] + 0x1p-40 * x * x) << way.body << t;
    }
    // Two squares are exact; next to an integer, or to a power of two, the choice may be another.
    if (way.followed) {
      EXPECT_GE(judged, 28) << way.body;
    } else {
      EXPECT_LE(judged, 2) << way.body;
      EXPECT_FALSE(run.loss.empty()) << way.body;
    }
  }
}

// exp by Horner's rule in products and sums, its argument x / 512; and by two parts of log2 e.
TEST(ExactRun, APolynomialOfProductsAndSumsIsASeriesAndANumberInTwoPartsIsExact) {
  const TensorMap given = inputs();
  const ExactOutput series = exact_of(program_of(
      "mul.rn.f32 %f1, %x, 0f3B000000; mul.rn.f32 %f2, %f1, 0f3E2AAAAB; add.rn.f32 %f2, %f2, 0f3F000000;"
      "mul.rn.f32 %f2, %f2, %f1; add.rn.f32 %f2, %f2, 0f3F800000; mul.rn.f32 %f2, %f2, %f1;"
      "add.rn.f32 %r, %f2, 0f3F800000;"));
  const ExactOutput parts =
      exact_of(program_of("mul.rn.f32 %f1, %x, 0f3B000000; mul.rn.f32 %f2, %f1, 0f3FB8AA3B;"
                          "fma.rn.f32 %f2, %f1, 0f32A57060, %f2; ex2.approx.f32 %r, %f2;"));
  for (size_t t = 0; t < 32; ++t) {
    const double y = given.at("x").value(static_cast<int64_t>(t)) / 512;
    EXPECT_LE(std::fabs(series.value[t] - std::exp(y)), series.slack[t]) << t;
    EXPECT_LE(series.slack[t], y * y * y / 6 + 1e-6 * y) << t;
    EXPECT_LE(std::fabs(parts.value[t] - std::exp(y)), parts.slack[t] + 0x1p-50) << t;
    EXPECT_LE(parts.slack[t], 0x1p-45 * y) << t;
  }
}

// Rotations by 60 degrees and back: without signs 1.37 times as much after each, with them never.
TEST(ExactRun, ProbesKnowWhatCancelsWhereSizesGrow) {
  std::string body = "mul.rn.f32 %f1, %x, 0f3FB8AA3B; mul.rn.f32 %f2, %x, %x;";
  for (int i = 0; i < 200; ++i)
    body +=
        "mul.rn.f32 %f3, %f1, 0f3F000000; fma.rn.f32 %f3, %f2, 0f3F5DB3D7, %f3;"
        "mul.rn.f32 %f4, %f2, 0f3F000000; fma.rn.f32 %f2, %f1, 0fBF5DB3D7, %f4; mov.f32 %f1, %f3;";
  const ExactOutput o = exact_of(program_of(body + "mov.f32 %r, %f1;"));
  for (size_t t = 0; t < 32; ++t) EXPECT_LE(o.slack[t], 1e-4 * (1 + std::fabs(o.value[t]))) << t;
}

// Sizes pass every double after 2,300 such steps: a number that is followed still has a slack, a lost one
// none.
TEST(ExactRun, WhatGrowsBeyondAllNumbersIsNotLostAndWhatIsLostStaysSo) {
  std::string turns = "mul.rn.f32 %f2, %x, %x; mov.u32 %b4, 0; $again:";
  turns +=
      "mul.rn.f32 %f3, %f1, 0f3F000000; fma.rn.f32 %f3, %f2, 0f3F5DB3D7, %f3;"
      "mul.rn.f32 %f4, %f2, 0f3F000000; fma.rn.f32 %f2, %f1, 0fBF5DB3D7, %f4; mov.f32 %f1, %f3;"
      "add.u32 %b4, %b4, 1; setp.lt.u32 %p1, %b4, 3000; @%p1 bra $again; mov.f32 %r, %f1;";
  const ExactOutput followed = exact_of(program_of("mul.rn.f32 %f1, %x, 0f3FB8AA3B;" + turns));
  const ExactOutput lost = exact_of(program_of(
      "st.global.f32 [%ao], 0f00000000; mul.rn.f32 %f1, %x, 0f3FB8AA3B; and.b32 %b5, %t, 1;"
      "setp.eq.u32 %p2, %b5, 0; @%p2 red.global.add.f32 [%ao], %f1; @%p2 ld.global.f32 %f1, [%ao];" +
      turns));
  for (size_t t = 0; t < 32; ++t) {
    const double x = inputs().at("x").value(static_cast<int64_t>(t));
    EXPECT_LE(followed.slack[t], 1e-3 * (1 + x * x)) << t;
    EXPECT_EQ(std::isinf(lost.slack[t]), t % 2 == 0) << t;
  }
}

// Numbers of the size of 1.5 * 2^23 are added as any others; only as a literal it rounds.
TEST(ExactRun, OnlyALiteralRoundsByBeingAdded) {
  Tensor x("x", Dtype::fp32, {{"T", 32}});
  for (int64_t t = 0; t < 32; ++t) x.set(t, 0x1.8p23f + static_cast<float>(t));
  const Program program = program_of(
      "mul.rn.f32 %f1, %x, 0f3DCCCCCD; add.rn.f32 %f2, %x, %f1;"
      "sub.rn.f32 %r, %f2, %x;");
  const ExactOutput o = run_exact(program, {{"x", x}}, {}).outputs.at("o");
  for (size_t t = 0; t < 32; ++t) {
    const double exact = x.value(static_cast<int64_t>(t)) * static_cast<double>(0x1.99999ap-4f);
    EXPECT_LE(std::fabs(o.value[t] - exact), 1e-12 * exact) << t;
  }
}

TEST(ExactRun, WhatItsHighHalfLeavesOfANumberIsNothing) {
  const TensorMap given = inputs();
  for (const char* take : {"shl.b32 %b2, %b1, 16;", "and.b32 %b2, %b1, 0xffff0000;"}) {
    const ExactOutput o = exact_of(program_of(
        std::string("ex2.approx.ftz.f32 %f1, %x; cvt.rn.bf16.f32 %h1, %f1; mov.b32 %b1, {%h1, %h1};") + take +
        "mov.b32 %f2, %b2; sub.rn.f32 %r, %f1, %f2;"));
    for (size_t t = 0; t < 32; ++t) {
      const double x = given.at("x").value(static_cast<int64_t>(t));
      EXPECT_LE(std::fabs(o.value[t]), 0x1p-58 * std::exp2(x)) << take << t;
    }
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
