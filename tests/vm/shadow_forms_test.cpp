// Shadows against MPFR, form by form.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <functional>
#include <random>

#include "src/base/vm/instruction_row.h"
#include "tests/vm/shadow_program.h"

namespace assay::vm {
namespace shadow_forms_test {

using namespace shadow_program;
using Real = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<100>,
                                           boost::multiprecision::et_off>;

struct Form {
  const char* body;                           ///< on a = %f1 = x y and b = %f2 = x + y, both rounded
  std::function<Real(Real a, Real b)> exact;  ///< of the unrounded a and b
};

const Real kZero = 0, kOne = 1;
Real clamp(const Real& t) {
  return t < 0 ? kZero : t > 1 ? kOne : t;
}

/// Every form of arithmetic with a real meaning; what carries shadows unchanged follows in kCarriers.
const std::vector<Form>& forms() {
  using std::abs;
  static const std::vector<Form> table = {
      {"add.rn.f32 %r, %f1, %f2;", [](Real a, Real b) { return a + b; }},
      {"add.rz.ftz.f32 %r, %f1, %f2;", [](Real a, Real b) { return a + b; }},
      {"add.sat.f32 %r, %f1, %f2;", [](Real a, Real b) { return clamp(a + b); }},
      {"sub.rn.f32 %r, %f1, %f2;", [](Real a, Real b) { return a - b; }},
      {"mul.rn.f32 %r, %f1, %f2;", [](Real a, Real b) { return a * b; }},
      {"mul.sat.f32 %r, %f1, %f2;", [](Real a, Real b) { return clamp(a * b); }},
      {"fma.rn.f32 %r, %f1, %f2, %f1;", [](Real a, Real b) { return a * b + a; }},
      {"fma.rm.ftz.f32 %r, %f2, %f1, %f2;", [](Real a, Real b) { return a * b + b; }},
      {"div.rn.f32 %r, %f1, %f2;", [](Real a, Real b) { return a / b; }},
      {"rcp.rn.f32 %r, %f2;", [](Real, Real b) { return 1 / b; }},
      {"rcp.approx.ftz.f32 %r, %f2;", [](Real, Real b) { return 1 / b; }},
      {"abs.f32 %f3, %f1; sqrt.rn.f32 %r, %f3;", [](Real a, Real) { return sqrt(abs(a)); }},
      {"abs.f32 %f3, %f1; rsqrt.approx.ftz.f32 %r, %f3;", [](Real a, Real) { return 1 / sqrt(abs(a)); }},
      {"ex2.approx.ftz.f32 %r, %f2;", [](Real, Real b) { return pow(Real(2), b); }},
      {"ex2.approx.f32 %r, %f2;", [](Real, Real b) { return pow(Real(2), b); }},
      {"abs.f32 %f3, %f1; sqrt.approx.f32 %r, %f3;", [](Real a, Real) { return sqrt(abs(a)); }},
      {"abs.f32 %f3, %f1; lg2.approx.f32 %r, %f3;", [](Real a, Real) { return log(abs(a)) / log(Real(2)); }},
      {"sin.approx.f32 %r, %f2;", [](Real, Real b) { return sin(b); }},
      {"cos.approx.ftz.f32 %r, %f2;", [](Real, Real b) { return cos(b); }},
      {"tanh.approx.f32 %r, %f1;", [](Real a, Real) { return tanh(a); }},
      {"div.approx.f32 %r, %f1, %f2;", [](Real a, Real b) { return a / b; }},
      {"div.full.ftz.f32 %r, %f1, %f2;", [](Real a, Real b) { return a / b; }},
      {"cvt.rn.bf16.f32 %h1, %f2; ex2.approx.ftz.bf16 %h1, %h1; mov.b32 %r, {0, %h1};",
       [](Real, Real b) { return pow(Real(2), b); }},
      {"cvt.rn.f16x2.f32 %b1, %f1, %f2; tanh.approx.f16x2 %b1, %b1; mov.b32 {%h1, %h2}, %b1;"
       "cvt.f32.f16 %r, %h2;",
       [](Real a, Real) { return tanh(a); }},
      {"cvt.f64.f32 %fd1, %f2; rcp.approx.ftz.f64 %fd2, %fd1; cvt.rn.f32.f64 %r, %fd2;",
       [](Real, Real b) { return 1 / b; }},
      {"abs.f32 %f3, %f1; cvt.f64.f32 %fd1, %f3; rsqrt.approx.f64 %fd2, %fd1; cvt.rn.f32.f64 %r, %fd2;",
       [](Real a, Real) { return 1 / sqrt(abs(a)); }},
      {"min.f32 %r, %f1, %f2;", [](Real a, Real b) { return a < b ? a : b; }},
      {"max.NaN.f32 %r, %f1, %f2;", [](Real a, Real b) { return a < b ? b : a; }},
      {"neg.f32 %r, %f1;", [](Real a, Real) { return -a; }},
      {"abs.f32 %r, %f1;", [](Real a, Real) { return abs(a); }},
      {"cvt.rn.bf16.f32 %h1, %f1; mov.b32 %r, {0, %h1};", [](Real a, Real) { return a; }},
      {"cvt.rn.f16.f32 %h1, %f2; cvt.f32.f16 %r, %h1;", [](Real, Real b) { return b; }},
      {"cvt.rna.tf32.f32 %b1, %f1; mov.b32 %r, %b1;", [](Real a, Real) { return a; }},
      {"cvt.rn.relu.f16.f32 %h1, %f2; cvt.f32.f16 %r, %h1;", [](Real, Real b) { return b < 0 ? kZero : b; }},
      {"cvt.rn.bf16x2.f32 %b1, %f1, %f2; mov.b32 {%h1, %h2}, %b1; mul.rn.bf16 %h3, %h1, %h2;"
       "mov.b32 %r, {0, %h3};",
       [](Real a, Real b) { return a * b; }},
      {"cvt.rn.f16x2.f32 %b1, %f1, %f2; fma.rn.f16x2 %b2, %b1, %b1, %b1; mov.b32 {%h1, %h2}, %b2;"
       "cvt.f32.f16 %r, %h2;",
       [](Real a, Real) { return a * a + a; }},
      {"cvt.rn.f16x2.f32 %b1, %f1, %f2; sub.f16x2 %b2, %b1, %b1; add.f16x2 %b2, %b2, %b1;"
       "neg.f16x2 %b2, %b2; abs.f16x2 %b2, %b2; cvt.f32.f16 %r, %h1; mov.b32 {%h1, %h2}, %b2;"
       "cvt.f32.f16 %r, %h1;",
       [](Real, Real b) { return abs(b); }},
      {"cvt.f64.f32 %fd1, %f1; cvt.f64.f32 %fd2, %f2; mul.rn.f64 %fd3, %fd1, %fd2; div.rn.f64 %fd4, %fd3, "
       "%fd2;"
       "fma.rn.f64 %fd5, %fd4, %fd3, %fd1; sub.rn.f64 %fd6, %fd5, %fd2; cvt.rn.f32.f64 %r, %fd6;",
       [](Real a, Real b) { return a * (a * b) + a - b; }},
      {"cvt.f64.f32 %fd1, %f1; abs.f64 %fd2, %fd1; sqrt.rn.f64 %fd3, %fd2; rcp.rn.f64 %fd4, %fd3;"
       "max.f64 %fd5, %fd4, %fd3; neg.f64 %fd6, %fd5; cvt.rn.f32.f64 %r, %fd6;",
       [](Real a, Real) {
         const Real root = sqrt(abs(a)), inverse = 1 / root;
         return root < inverse ? -inverse : -root;
       }},
  };
  return table;
}

/// Ways for %f1 to reach %r unchanged.
const char* const kCarriers[] = {
    "mov.f32 %r, %f1;",
    "mov.b32 %b1, %f1; mov.b32 %r, %b1;",
    "mov.b64 %d1, {%f2, %f1}; mov.b64 {%f3, %r}, %d1;",
    "setp.eq.u32 %p1, %t, %t; selp.f32 %r, %f1, %f2, %p1;",
    "shl.b32 %b2, %t, 3; mov.u32 %b3, tile; add.s32 %b2, %b2, %b3;"
    "st.shared.v2.f32 [%b2], {%f2, %f1}; bar.sync 0; ld.shared.f32 %r, [%b2+4];",
    "mov.b32 %b1, %f1; shfl.sync.bfly.b32 %b2, %b1, 1, 31, -1; mov.b32 %r, %b2;",
    "mov.b32 %b1, %f1; mov.b32 %b2, %f2; and.b32 %b3, %b1, -1; or.b32 %b3, %b3, 0; mov.b32 %r, %b3;",
    "st.global.f32 [%ao], %f1; cvta.to.global.u64 %d1, %ao; ld.global.f32 %r, [%d1];",
    "shl.b32 %b2, %t, 4; mov.u32 %b3, tile; add.s32 %b2, %b2, %b3; st.global.f32 [%ao], %f1;"
    "cp.async.ca.shared.global [%b2], [%ao], 4; cp.async.commit_group; cp.async.wait_group 0;"
    "ld.shared.f32 %r, [%b2];",
    "mov.b32 %b1, %f1; shl.b32 %b2, %t, 4; mov.u32 %b3, tile; add.s32 %b2, %b2, %b3;"
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%b2], {%b1}; bar.sync 0;"
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b4}, [%b2]; mov.b32 %r, %b4;",
    "mov.u32 %b3, tile; wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%b3], "
    "{%f1,%f1,%f1,%f1,%f1,%f1,%f1,%f1}, 16; bar.sync 0; shl.b32 %b2, %t, 2; add.s32 %b2, %b2, %b3;"
    "ld.shared.f32 %r, [%b2+128];",
};

const char* const kOperands = "mul.rn.f32 %f1, %x, %y; add.rn.f32 %f2, %x, %y;\n";

/// The shadow's error against exact - value, which MPFR gives without rounding that matters.
void expect_exact(const std::string& body, double x, double y, const Real& exact, bool must_err) {
  const ShadowReport report = shadow_of(kOperands + body, x, y);
  ASSERT_EQ(report.outputs.size(), 1u) << body;
  const ShadowOutput& o = report.outputs[0];
  ASSERT_EQ(o.followed, 32) << body;
  const Real error = exact - Real(o.value);
  const double wanted = static_cast<double>(error);
  const double got = o.exact - o.value;
  // The error itself is carried in double: 2^-40 of it, or 2^-75 of the value where it nearly cancelled.
  const double allowed = std::fabs(wanted) * 0x1p-40 + std::fabs(static_cast<double>(exact)) * 0x1p-75;
  EXPECT_NEAR(o.max_error, std::fabs(wanted), allowed) << body << fmt::format(" x {:a} y {:a}", x, y);
  EXPECT_LE(std::fabs(wanted), o.bound * (1 + 0x1p-30) + allowed) << body;
  if (must_err) {
    EXPECT_GT(o.max_error, 0) << body;
  }
  if (wanted != 0) {
    EXPECT_EQ(got < 0, wanted < 0) << body;
  }
}

TEST(ShadowForms, EveryFormIsFollowedAsMpfrComputesIt) {
  std::mt19937 random(20251120);
  std::uniform_real_distribution<double> mantissa(1, 2);
  for (const Form& form : forms())
    for (int trial = 0; trial < 12; ++trial) {
      const double sign = trial % 3 == 2 ? -1 : 1;
      const double x = static_cast<float>(sign * mantissa(random));
      const double y = static_cast<float>(std::ldexp(mantissa(random), trial % 5 - 3));
      expect_exact(form.body, x, y, form.exact(Real(x) * Real(y), Real(x) + Real(y)), false);
    }
}

TEST(ShadowForms, WhatTravelsUnchangedKeepsItsShadow) {
  for (const char* body : kCarriers) expect_exact(body, 1.1f, 0.7f, Real(1.1f) * Real(0.7f), true);
}

TEST(ShadowForms, EveryArithmeticRowHasARealMeaningOrIsAStepFunction) {
  for (const Row& row : rows()) {
    const bool steps = row.pattern.starts_with("cvt.r") && row.pattern.substr(6, 1) == "i";
    const bool copies_sign = row.pattern.starts_with("copysign");
    const bool rounds =
        row.flow == Flow::arithmetic ||
        (row.flow == Flow::conversion && ptx::is_float(row.result) && ptx::is_float(row.sources[0]));
    EXPECT_EQ(row.real == nullptr, !rounds || steps || copies_sign) << row.pattern;
  }
}

TEST(ShadowForms, AnIntegerOperationOnTheBitsStartsAnew) {
  const ShadowReport report =
      shadow_of(std::string(kOperands) + "mov.b32 %b1, %f1; xor.b32 %b1, %b1, 0x00700000; mov.b32 %r, %b1;",
                1.1f, 0.7f);
  EXPECT_EQ(report.outputs[0].followed, 0);
  EXPECT_EQ(report.outputs[0].max_error, 0);
}

TEST(ShadowForms, AFlippedSignIsANegationAndAClearedOneAMagnitude) {
  const auto on_bits = [](const char* work) {
    return std::string("neg.f32 %f1, %f1; mov.b32 %b1, %f1; ") + work + " mov.b32 %r, %b1;";
  };
  expect_exact(on_bits("xor.b32 %b1, %b1, 0x80000000;"), 1.1f, 0.7f, Real(1.1f) * Real(0.7f), true);
  expect_exact(on_bits("and.b32 %b1, %b1, 0x7fffffff;"), 1.1f, 0.7f, Real(1.1f) * Real(0.7f), true);
}

/// A B by rows of x and columns of y: element (r, n) sums over k of bf16(p[r, k]) bf16(p[n, k]), p = x y.
TEST(ShadowForms, ATensorCoreSumIsTheExactDotProduct) {
  const std::string body = R"(
  mul.rn.f32 %f1, %x, %y; add.rn.f32 %f2, %x, %y;
  cvt.rn.bf16x2.f32 %b1, %f1, %f1;
  mov.f32 %f10, %f2; mov.f32 %f11, %f2; mov.f32 %f12, %f2; mov.f32 %f13, %f2;
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f10,%f11,%f12,%f13},
    {%b1,%b1,%b1,%b1}, {%b1,%b1}, {%f10,%f11,%f12,%f13};
  mov.f32 %r, %f11;)";
  const auto x = [](int64_t i) { return static_cast<float>(1 + 0.013 * static_cast<double>(i)); };
  const auto y = [](int64_t i) { return static_cast<float>(0.3 + 0.0071 * static_cast<double>(i * i % 17)); };
  const ShadowReport report = run_shadow(plan_of(body), inputs_of(x, y), {"sm_90", 1, 0}, {.by_line = false});
  // Lane l: row l / 4, column 2 (l mod 4) + 1; row r's four lanes give each product four times over k = 16.
  const auto p = [&](int64_t lane) { return Real(x(lane)) * Real(y(lane)); };
  double largest = 0;
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t row = lane / 4, column = 2 * (lane % 4) + 1;
    Real sum = Real(x(lane)) + Real(y(lane));
    for (int64_t t = 0; t < 4; ++t) sum += 4 * p(4 * row + t) * p(4 * column + t);
    if (fmt::format("o[t={}]", lane) == report.outputs[0].worst) {
      const auto error = static_cast<double>(sum - Real(report.outputs[0].value));
      EXPECT_NEAR(report.outputs[0].max_error, std::fabs(error), std::fabs(error) * 0x1p-40);
      largest = std::fabs(error);
    }
  }
  EXPECT_GT(largest, 0x1p-12) << report.outputs[0].worst;
}

TEST(ShadowForms, AWarpgroupsSumIsTheExactDotProductOfWhatLiesInSharedMemory) {
  // Thread i gives element (k = 8 (i / 64) + i mod 8, n = i / 8 mod 8) of B, the bf16 of x y; A is 1.
  const std::string body = R"(
  mul.rn.f32 %f1, %x, %y; cvt.rn.bf16.f32 %h1, %f1;
  mov.u32 %b1, tile; shl.b32 %b2, %t, 1; add.s32 %b2, %b2, %b1; st.shared.b16 [%b2], %h1;
  fence.proxy.async; bar.sync 0;
  and.b32 %b3, %b1, 0x3ffff; shr.u32 %b3, %b3, 4; cvt.u64.u32 %d1, %b3; or.b64 %d1, %d1, 0x1000080000;
  mov.b32 %b4, 0x3f803f80; mov.f32 %r, 0f00000000; mov.f32 %f2, %r; mov.f32 %f3, %r; mov.f32 %f4, %r;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r,%f2,%f3,%f4}, {%b4,%b4,%b4,%b4}, %d1, 1, -1, 1, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;)";
  Program plan = plan_of(body);
  plan.launches[0].block = {128, 1, 1};
  plan.outputs[0].axes[0].size = 128;
  const auto x = [](int64_t i) { return static_cast<float>(1 + 0.013 * static_cast<double>(i)); };
  const auto y = [](int64_t i) { return static_cast<float>(0.3 + 0.0071 * static_cast<double>(i * i % 17)); };
  const ShadowReport report = run_shadow(plan, inputs_of(x, y, 128), {"sm_90", 1, 0}, {.by_line = false});
  // Thread 0's first sum is column 0, negated; all columns are followed.
  EXPECT_EQ(report.outputs[0].followed, 128);
  bool seen = false;
  for (int64_t t = 0; t < 128; ++t) {
    if (fmt::format("o[t={}]", t) != report.outputs[0].worst) continue;
    Real sum = 0;
    for (int64_t i = 0; i < 128; ++i)
      if (i / 8 % 8 == 2 * (t % 4)) sum -= Real(x(i)) * Real(y(i));
    const auto error = static_cast<double>(sum - Real(report.outputs[0].value));
    EXPECT_NEAR(report.outputs[0].max_error, std::fabs(error), std::fabs(error) * 0x1p-40);
    EXPECT_GT(std::fabs(error), 0x1p-14);
    seen = true;
  }
  EXPECT_TRUE(seen) << report.outputs[0].worst;
}

TEST(ShadowForms, AShuffleBringsTheShadowOfTheLaneThatWasRead) {
  // Lane 5 alone rounds: its product is the only one that is no float.
  const auto x = [](int64_t i) { return i == 5 ? 1.1f : 1.0f; };
  const auto y = [](int64_t i) { return i == 5 ? 0.7f : 0.5f; };
  const ShadowReport report = run_shadow(plan_of("mul.rn.f32 %f1, %x, %y; mov.b32 %b1, %f1;"
                                                 "shfl.sync.bfly.b32 %b2, %b1, 3, 31, -1; mov.b32 %r, %b2;"),
                                         inputs_of(x, y), {"sm_90", 1, 0}, {.by_line = false});
  EXPECT_EQ(report.outputs[0].worst, "o[t=6]");
  EXPECT_EQ(report.outputs[0].max_error, std::fabs(double{1.1f} * double{0.7f} - double{1.1f * 0.7f}));
}

}  // namespace shadow_forms_test
}  // namespace assay::vm
