// Shadows against MPFR, form by form, and what is said of where errors come from.
#include "src/base/vm/shadow_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <functional>
#include <random>

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace shadow_run_test {

using Real = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<100>,
                                           boost::multiprecision::et_off>;

/// One warp, thread t with %x = x[t], %y = y[t] (f32, exact inputs); `body` leaves %r, stored to o[t]. `.loc`
/// lines count from 1 in "k.cu"; the loads stand on line 90, the store on 91.
Program plan_of(const std::string& body, uint32_t blocks = 1) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 py, .param .u64 po) {
  .reg .f32 %x, %y, %r, %f<64>;
  .reg .f64 %fd<16>;
  .reg .b32 %t, %c, %n, %b<16>;
  .reg .b16 %h<16>;
  .reg .b64 %ax, %ay, %ao, %step, %d<8>;
  .reg .pred %p<8>;
  .shared .align 16 .b8 tile[2048];
  .loc 1 90 0
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.s32 %n, %c, 32, %t;
  mul.wide.u32 %step, %n, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ay, %ay, %step;
  add.s64 %ao, %ao, %step;
  ld.global.f32 %x, [%ax];
  ld.global.f32 %y, [%ay];
)" + body + "\n  .loc 1 91 0\n  st.global.f32 [%ao], %r;\n  ret;\n}\n.file 1 \"k.cu\"\n";
  Program plan;
  plan.name = "small";
  plan.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  plan.outputs.push_back({"o", Dtype::fp32, {{"T", 32 * int64_t{blocks}}}});
  plan.launches.push_back({"m",
                           "kernel",
                           {blocks, 1, 1},
                           {32, 1, 1},
                           0,
                           {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}}});
  return plan;
}

TensorMap inputs_of(const std::function<double(int64_t)>& x, const std::function<double(int64_t)>& y,
                    int64_t count = 32) {
  TensorMap inputs;
  for (const auto& [name, value] : {std::pair{"x", x}, std::pair{"y", y}}) {
    Tensor t(name, Dtype::fp32, {{"T", count}});
    for (int64_t i = 0; i < count; ++i) t.set(i, value(i));
    inputs[name] = t;
  }
  return inputs;
}

ShadowReport shadow_of(const std::string& body, double x, double y) {
  const TensorMap inputs = inputs_of([x](int64_t) { return x; }, [y](int64_t) { return y; });
  return run_shadow(plan_of(body), inputs, {"sm_90", 1, 0}, {.by_line = false});
}

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

TEST(ShadowRun, EveryFormIsFollowedAsMpfrComputesIt) {
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

TEST(ShadowRun, WhatTravelsUnchangedKeepsItsShadow) {
  for (const char* body : kCarriers) expect_exact(body, 1.1f, 0.7f, Real(1.1f) * Real(0.7f), true);
}

TEST(ShadowRun, EveryArithmeticRowHasARealMeaningOrIsAStepFunction) {
  for (const Row& row : rows()) {
    const bool steps = row.pattern.starts_with("cvt.r") && row.pattern.substr(6, 1) == "i";
    const bool copies_sign = row.pattern.starts_with("copysign");
    const bool rounds =
        row.flow == Flow::arithmetic ||
        (row.flow == Flow::conversion && ptx::is_float(row.result) && ptx::is_float(row.sources[0]));
    EXPECT_EQ(row.real == nullptr, !rounds || steps || copies_sign) << row.pattern;
  }
}

TEST(ShadowRun, AnIntegerOperationOnTheBitsStartsAnew) {
  const ShadowReport report =
      shadow_of(std::string(kOperands) + "mov.b32 %b1, %f1; xor.b32 %b1, %b1, 0x00700000; mov.b32 %r, %b1;",
                1.1f, 0.7f);
  EXPECT_EQ(report.outputs[0].followed, 0);
  EXPECT_EQ(report.outputs[0].max_error, 0);
}

TEST(ShadowRun, AFlippedSignIsANegationAndAClearedOneAMagnitude) {
  const auto on_bits = [](const char* work) {
    return std::string("neg.f32 %f1, %f1; mov.b32 %b1, %f1; ") + work + " mov.b32 %r, %b1;";
  };
  expect_exact(on_bits("xor.b32 %b1, %b1, 0x80000000;"), 1.1f, 0.7f, Real(1.1f) * Real(0.7f), true);
  expect_exact(on_bits("and.b32 %b1, %b1, 0x7fffffff;"), 1.1f, 0.7f, Real(1.1f) * Real(0.7f), true);
}

/// A B by rows of x and columns of y: element (r, n) sums over k of bf16(p[r, k]) bf16(p[n, k]), p = x y.
TEST(ShadowRun, ATensorCoreSumIsTheExactDotProduct) {
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

TEST(ShadowRun, AWarpgroupsSumIsTheExactDotProductOfWhatLiesInSharedMemory) {
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

TEST(ShadowRun, AShuffleBringsTheShadowOfTheLaneThatWasRead) {
  // Lane 5 alone rounds: its product is the only one that is no float.
  const auto x = [](int64_t i) { return i == 5 ? 1.1f : 1.0f; };
  const auto y = [](int64_t i) { return i == 5 ? 0.7f : 0.5f; };
  const ShadowReport report = run_shadow(plan_of("mul.rn.f32 %f1, %x, %y; mov.b32 %b1, %f1;"
                                                 "shfl.sync.bfly.b32 %b2, %b1, 3, 31, -1; mov.b32 %r, %b2;"),
                                         inputs_of(x, y), {"sm_90", 1, 0}, {.by_line = false});
  EXPECT_EQ(report.outputs[0].worst, "o[t=6]");
  EXPECT_EQ(report.outputs[0].max_error, std::fabs(double{1.1f} * double{0.7f} - double{1.1f * 0.7f}));
}

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
