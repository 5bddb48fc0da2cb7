#include "src/base/vm/amplified.h"

#include <gtest/gtest.h>

#include "src/base/vm/shadow_run.h"
#include "tests/diagnosis/elementwise_kernel.h"

namespace assay::vm {
namespace amplified_test {

/// x = first + t * step, y is one value.
std::vector<ShadowAmplifier> amplifiers(const std::string& body, double first, double step, double y) {
  TensorMap inputs = elementwise_inputs(first, y, first);
  for (int64_t i = 0; i < 32; ++i) inputs["x"].set(i, first + static_cast<double>(i) * step);
  return run_shadow(elementwise_plan(body), inputs, {}).amplifiers;
}

TEST(Amplified, ADifferenceOfSquaresIsNamedAndASquaredDifferenceIsNot) {
  const auto cancelling = amplifiers(
      "mul.rn.f32 %f0, %x, %x; fma.rn.f32 %f0, %y, %y, %f0;\n"
      "add.rn.f32 %f1, %x, %y; mul.rn.f32 %f1, %f1, 0f3F000000;\n"
      "mul.rn.f32 %f2, %f1, %f1; mul.rn.f32 %f0, %f0, 0f3F000000;\n"
      "sub.rn.f32 %r, %f0, %f2;\n",
      3000.1, 1.0 / 64, 3001.3);
  ASSERT_EQ(cancelling.size(), 1u);
  EXPECT_EQ(cancelling[0].instruction, "sub.rn.f32");
  EXPECT_GT(cancelling[0].growth, 0x1p16);  // 3000^2 over the variance, less a few binades
  EXPECT_TRUE(
      amplifiers("sub.rn.f32 %f0, %x, %y; mul.rn.f32 %f0, %f0, 0f3F000000; mul.rn.f32 %r, %f0, %f0;\n",
                 3000.1, 1.0 / 64, 3001.3)
          .empty());
}

TEST(Amplified, AnExponentialOfALargeArgumentIsNamed) {
  const auto found = amplifiers(
      "mul.rn.f32 %f0, %x, %y; mul.rn.f32 %f0, %f0, 0f3C23D70A;\n"
      "cvt.rn.bf16.f32 %h0, %f0; mov.b16 %h1, 0; mov.b32 %b0, {%h1, %h0}; mov.b32 %f0, %b0;\n"
      "ex2.approx.f32 %r, %f0;\n",
      90.3, 1.0 / 9, 91.7);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].instruction, "ex2.approx.f32");
}

/// `steps` times; what `step` does to %r, from x at the start.
std::string loop(int steps, const std::string& step) {
  return "mov.f32 %r, %x; mov.u32 %b0, 0;\nAGAIN:\n" + step + "add.u32 %b0, %b0, 1; setp.lt.u32 %p0, %b0, " +
         std::to_string(steps) + "; @%p0 bra AGAIN;\n";
}

TEST(Amplified, ALoopThatAmplifiesLittleEachTimeIsNamedAndOneThatOnlyRoundsIsNot) {
  // Times 2, less what makes it stay near y: the error doubles each time.
  const auto found = amplifiers("mul.rn.f32 %f2, %y, 0f3F800001;\n" +
                                    loop(14, "mul.rn.f32 %f1, %r, 0f40000000; sub.rn.f32 %r, %f1, %f2;\n"),
                                3.1, 1e-6, 3.1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].instruction, "sub.rn.f32");
  EXPECT_GE(found[0].growth, 16);
  // Half of it and half of y: each rounding is halved before the next.
  EXPECT_TRUE(amplifiers("mul.rn.f32 %f2, %y, 0f3EFFFFFF;\n" +
                             loop(64, "mul.rn.f32 %f1, %r, 0f3EFFFFFF; add.rn.f32 %r, %f1, %f2;\n"),
                         3.1, 1e-6, 3.3)
                  .empty());
}

/// Each step takes 225 from about 300, four times the error: first from what was rounded at 8192, then always
/// from the difference of squares, which is far off. No step's result comes back.
TEST(Amplified, GrowthsOfUnrelatedValuesAreNoProduct) {
  const auto found = amplifiers(
      "mul.rn.f32 %f0, %x, %y; mul.rn.f32 %f1, %y, %y;\n"
      "sub.rn.f32 %f3, %f0, %f1; mul.rn.f32 %f5, %x, 0f3DCCCCCD;\n"
      "add.rn.f32 %f5, %f5, 0f46000000; sub.rn.f32 %f5, %f5, 0f46000000; mov.u32 %b0, 0;\n"
      "AGAIN:\n"
      "sub.rn.f32 %r, %f5, 0f43610000;\n"
      "mov.f32 %f5, %f3; add.u32 %b0, %b0, 1; setp.lt.u32 %p0, %b0, 14; @%p0 bra AGAIN;\n",
      3000.1, 1.0 / 1024, 3000.0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_GT(found[0].growth, 0x1p8);
}

TEST(Amplified, MediansAreOfBinadesAndMergesDoNotDependOnTheirOrder) {
  Amplified a, b;
  for (const double x : {0.3, 0.3, 5.0}) a.errors.add(x);
  b.errors.add(1e-30), b.errors.add(1e300);
  a.error = b.error = 0.3, a.block = 4, b.block = 2;
  EXPECT_EQ(a.errors.median(), 0.25);
  EXPECT_EQ(a.errors.quantile(0.875), 4);
  EXPECT_EQ(Binades{}.median(), 0);
  Amplified ab = a, ba = b;
  ab.merge(b), ba.merge(a);
  EXPECT_EQ(ab.errors.counts, ba.errors.counts);
  EXPECT_EQ(ab.block, 2u);
  EXPECT_EQ(ba.block, 2u);
}

}  // namespace amplified_test
}  // namespace assay::vm
