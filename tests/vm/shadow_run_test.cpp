// What shadows say of where errors come from.
#include "src/base/vm/shadow_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/vm/shadow_program.h"

namespace assay::vm {
namespace shadow_run_test {

using namespace shadow_program;

/// A polynomial on lines 1 to 4; line 3 rounds its intermediate to bf16 if asked.
std::string lines_kernel(bool broken) {
  return std::string(
             ".loc 1 1 0\n fma.rn.f32 %f1, %x, %y, %x;\n.loc 1 2 0\n fma.rn.f32 %f2, %f1, %y, %x;\n.loc 1 3 "
             "0\n") +
         (broken ? " cvt.rn.bf16.f32 %h1, %f2; mov.b32 %f3, {0, %h1};\n" : " mov.f32 %f3, %f2;\n") +
         ".loc 1 4 0\n fma.rn.f32 %r, %f3, %x, %y;\n";
}

ShadowReport lines_report(bool broken, int threads, uint32_t blocks = 8) {
  const int64_t count = 32 * int64_t{blocks};
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const TensorMap inputs =
      inputs_of([&](int64_t) { return uniform(random); }, [&](int64_t) { return uniform(random); }, count);
  return run_shadow(plan_of(lines_kernel(broken), blocks), inputs, {"sm_90", threads, 0});
}

TEST(ShadowRun, TheLineThatRoundsToBf16IsBlamedAndItsTwinIsNot) {
  const ShadowReport bad = lines_report(true, 1), good = lines_report(false, 1);
  ASSERT_EQ(bad.lines.size(), 4u);
  EXPECT_EQ(bad.lines[0].where.line, 3);
  EXPECT_EQ(bad.lines[0].where.file, "k.cu");
  EXPECT_EQ(bad.lines[0].instruction, "cvt.rn.bf16.f32");
  EXPECT_GT(bad.lines[0].share, 99);
  EXPECT_NEAR(bad.lines[0].largest, 0x1p-8, 0x1p-9);
  double total = 0;
  for (const ShadowLine& line : bad.lines) total += line.share;
  EXPECT_NEAR(total, 100, 1e-9);
  ASSERT_EQ(good.lines.size(), 3u);
  for (const ShadowLine& line : good.lines) {
    EXPECT_NE(line.where.line, 3);
    EXPECT_LE(line.largest, 0x1p-24);
    EXPECT_GT(line.share, 5);
  }
}

/// Bits of a float that are cut off, by a mask or as the high half, are a rounding as a conversion is.
TEST(ShadowRun, TheLineThatCutsBitsOffIsBlamed) {
  for (const std::string cut : {" mov.b32 %b1, %f2; and.b32 %b1, %b1, 0xffff0000; mov.b32 %f3, %b1;\n",
                                " mov.b32 {%h2, %h1}, %f2; mov.b32 %f3, {0, %h1};\n"}) {
    const std::string conversion = " cvt.rn.bf16.f32 %h1, %f2; mov.b32 %f3, {0, %h1};\n";
    std::string body = lines_kernel(true);
    body.replace(body.find(conversion), conversion.size(), cut);
    const TensorMap inputs = inputs_of([](int64_t i) { return 0.3 + 0.01 * static_cast<double>(i); },
                                       [](int64_t i) { return 0.7 - 0.01 * static_cast<double>(i); }, 32);
    const ShadowReport report = run_shadow(plan_of(body, 1), inputs, {"sm_90", 1, 0});
    ASSERT_FALSE(report.lines.empty());
    EXPECT_EQ(report.lines[0].where.line, 3) << cut;
    EXPECT_GT(report.lines[0].share, 99) << cut;
  }
}

/// Instructions of a line that calls put there: the calls of the one that rounds most are said, not those of
/// the first.
TEST(ShadowRun, ALineIsReachedByTheCallsOfItsLargestRounding) {
  ShadowOptions options;
  options.locate = [](const ptx::Module& module, int32_t function, int32_t instruction) {
    SourceLocation where;
    where.file = "k.cu", where.line = 1;
    where.frames = {
        module.functions[static_cast<size_t>(function)].body[static_cast<size_t>(instruction)].opcode};
    return where;
  };
  const auto value = [](int64_t i) { return 1 + static_cast<double>(i) / 7; };
  const ShadowReport report =
      run_shadow(plan_of(lines_kernel(true), 1), inputs_of(value, value, 32), {"sm_90", 1, 0}, options);
  ASSERT_EQ(report.lines.size(), 1u);
  EXPECT_EQ(report.lines[0].instruction, "cvt.rn.bf16.f32");
  EXPECT_EQ(report.lines[0].where.frames, std::vector<std::string>{"cvt.rn.bf16.f32"});
}

TEST(ShadowRun, ReportsDoNotDependOnTheNumberOfThreads) {
  const ShadowReport one = lines_report(true, 1), three = lines_report(true, 3);
  EXPECT_EQ(one.outputs[0].rms_error, three.outputs[0].rms_error);
  EXPECT_EQ(one.outputs[0].worst, three.outputs[0].worst);
  ASSERT_EQ(one.lines.size(), three.lines.size());
  for (size_t i = 0; i < one.lines.size(); ++i) {
    EXPECT_EQ(one.lines[i].share, three.lines[i].share);
    EXPECT_EQ(one.lines[i].where.line, three.lines[i].where.line);
    EXPECT_EQ(one.lines[i].roundings, three.lines[i].roundings);
    EXPECT_EQ(one.lines[i].largest, three.lines[i].largest);
  }
}

/// What is said of how near an instruction comes to where its format ends, and of its harmless twin.
struct EdgeCase {
  const char* body;
  double x;
  const char* instruction;
  const char* text;  ///< a part of it
  bool near;         ///< within 4 binades
};

TEST(ShadowRun, TheDistanceToTheEndOfAFormatIsSaid) {
  const EdgeCase all[] = {
      {"ex2.approx.f32 %r, %x;", -3.2, "ex2.approx.f32", "saw up to -3.2: safe", false},
      {"ex2.approx.f32 %r, %x;", 126, "ex2.approx.f32", "saw up to 126: within 2 of overflow (threshold 128)",
       true},
      {"ex2.approx.f32 %r, %x;", 100, "ex2.approx.f32", "28 below overflow (threshold 128)", false},
      {"cvt.rn.f16.f32 %h1, %x; cvt.f32.f16 %r, %h1;", 60000, "cvt.rn.f16.f32", "of overflow of fp16", true},
      {"cvt.rn.f16.f32 %h1, %x; cvt.f32.f16 %r, %h1;", 70000, "cvt.rn.f16.f32",
       "overflowed fp16 (largest 65504)", true},
      {"cvt.rn.f16.f32 %h1, %x; cvt.f32.f16 %r, %h1;", 0.5, "cvt.rn.f16.f32", "safe", false},
      {"fma.rn.f32 %r, %x, %x, %y;", 1e19, "fma.rn.f32", "of overflow of fp32", true},
      {"fma.rn.f32 %r, %x, %x, %y;", 10, "fma.rn.f32", "safe", false},
      {"cvt.rn.f16.f32 %h1, %x; add.f16 %h2, %h1, %h1; cvt.f32.f16 %r, %h2;", 30000, "add.f16",
       "of overflow of fp16", true},
      {"rcp.approx.ftz.f32 %r, %x;", 1e-37, "rcp.approx.ftz.f32", "divisor down to 1e-37", false},
      {"rcp.approx.ftz.f32 %r, %x;", 0, "rcp.approx.ftz.f32", "divided by zero", true},
      {"sqrt.rn.f32 %r, %x;", 0, "sqrt.rn.f32", "saw 0", true},
      {"lg2.approx.f32 %r, %x;", -2, "lg2.approx.f32", "saw -2: negative", true},
      {"lg2.approx.f32 %r, %x;", 2, "lg2.approx.f32", "saw down to 2: safe", false},
      {"cvt.rn.bf16x2.f32 %b1, %x, %y; mov.b32 %r, %b1;", 3e38, "cvt.rn.bf16x2.f32", "of overflow of bf16",
       true},
  };
  for (const EdgeCase& c : all) {
    const ShadowReport report = shadow_of(c.body, c.x, 1);
    const ShadowEdge* found = nullptr;
    for (const ShadowEdge& e : report.edges)
      if (e.instruction == c.instruction) found = &e;
    ASSERT_TRUE(found) << c.body;
    EXPECT_NE(found->text.find(c.text), std::string::npos) << c.body << " of " << c.x << ": " << found->text;
    EXPECT_EQ(found->distance < 4, c.near) << c.body << " of " << c.x << ": " << found->distance;
  }
}

TEST(ShadowRun, TheElementAskedForIsTold) {
  const TensorMap inputs =
      inputs_of([](int64_t i) { return i == 9 ? 1.1f : 1.0f; }, [](int64_t) { return 0.7f; });
  ShadowOptions options;
  options.by_line = false;
  options.element = {"o", 9};
  const ShadowReport report = run_shadow(plan_of("mul.rn.f32 %r, %x, %y;"), inputs, {"sm_90", 1, 0}, options);
  ASSERT_TRUE(report.element);
  EXPECT_EQ(report.element->element, "o[t=9]");
  EXPECT_EQ(report.element->exact, double{1.1f} * double{0.7f});
}

TEST(ShadowRun, RoundingToAnIntegerByALargeConstantIsAChoiceAndNoError) {
  // 2^x as mathematics libraries compute it: n = x + 1.5 * 2^23 - 1.5 * 2^23, 2^(x - n), times 2^n made of
  // bits.
  const char* body =
      "mov.f32 %f9, 0f4B400000; add.rn.f32 %f1, %x, %f9; mov.b32 %b1, %f1; sub.rn.f32 %f2, %f1, %f9;"
      "sub.rn.f32 %f3, %x, %f2; ex2.approx.ftz.f32 %f4, %f3; shl.b32 %b2, %b1, 23; add.s32 %b2, %b2, "
      "0x3f800000;"
      "mov.b32 %f5, %b2; mul.rn.f32 %r, %f4, %f5;";
  for (const double x : {0.3, -2.7, 5.49, 0.0}) {
    ShadowOptions options;
    options.by_line = false;
    options.element = {"o", 3};
    const float given = static_cast<float>(x);
    const ShadowReport report =
        run_shadow(plan_of(body), inputs_of([&](int64_t) { return given; }, [](int64_t) { return 0; }),
                   {"sm_90", 1, 0}, options);
    ASSERT_TRUE(report.element);
    EXPECT_NEAR(report.element->exact, std::exp2(static_cast<double>(given)), 1e-13 * std::exp2(x)) << x;
  }
}

TEST(ShadowRun, ACalledFunctionHandsShadowsOn) {
  std::string body =
      "mul.rn.f32 %f1, %x, %y; { .param .f32 a; .param .f32 b; st.param.f32 [a], %f1; call.uni (b), same, "
      "(a);"
      " ld.param.f32 %r, [b]; }";
  Program plan = plan_of(body);
  std::string text = *plan.modules[0].ptx;
  text.insert(text.find(".visible"),
              ".func (.param .f32 result) same(.param .f32 argument) { .reg .f32 %f<2>;"
              " ld.param.f32 %f1, [argument]; st.param.f32 [result], %f1; ret; }\n");
  plan.modules[0].ptx = std::make_shared<const std::string>(text);
  const TensorMap inputs = inputs_of([](int64_t) { return 1.1f; }, [](int64_t) { return 0.7f; });
  const ShadowReport report = run_shadow(plan, inputs, {"sm_90", 1, 0}, {.by_line = false});
  EXPECT_EQ(report.outputs[0].followed, 32);
  EXPECT_EQ(report.outputs[0].max_error, std::fabs(double{1.1f} * double{0.7f} - double{1.1f * 0.7f}));
}

/// (x + 1000) - 1000 loses x's last bits on line 2, so that all of x is gone at 2^30.
TEST(ShadowRun, ThePlaceWhereValueAndShadowPartIsNamedOnlyWhereAnOutputParted) {
  const auto run = [](const char* large) {
    const std::string body = fmt::format(
        ".loc 1 1 0\n mul.rn.f32 %f1, %x, %y;\n.loc 1 2 0\n add.rn.f32 %f2, %f1, {0};\n.loc 1 3 0\n "
        "sub.rn.f32 "
        "%r, %f2, {0};\n",
        large);
    return shadow_of(body, 1.1f, 0.7f);
  };
  const ShadowReport lost = run("0f4E800000"), kept = run("0f3F800000");  // 2^30 and 1
  ASSERT_TRUE(lost.parting);
  EXPECT_EQ(lost.parting->where.line, 3);
  EXPECT_EQ(lost.parting->instruction, "sub.rn.f32");
  EXPECT_EQ(lost.parting->value, 0);
  EXPECT_NEAR(lost.parting->exact, 0.77, 1e-6);
  EXPECT_FALSE(kept.parting);
}

TEST(ShadowRun, ValuesThatAreNotFiniteEndTheirShadowsAndAreCounted) {
  const ShadowReport report = shadow_of("ex2.approx.ftz.f32 %r, %x;", 130, 1);
  EXPECT_EQ(report.outputs[0].nonfinite, 32);
  EXPECT_EQ(report.outputs[0].followed, 0);
  EXPECT_EQ(report.ended, 32u);
}

}  // namespace shadow_run_test
}  // namespace assay::vm
