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

TEST(Amplified, MediansAreOfBinadesAndMergesDoNotDependOnTheirOrder) {
  Amplified a, b;
  for (const double x : {0.3, 0.3, 5.0}) a.errors.add(x);
  b.errors.add(1e-30), b.errors.add(1e300);
  a.error = b.error = 0.3, a.block = 4, b.block = 2;
  EXPECT_EQ(a.errors.median(), 0.25);
  EXPECT_EQ(Binades{}.median(), 0);
  Amplified ab = a, ba = b;
  ab.merge(b), ba.merge(a);
  EXPECT_EQ(ab.errors.counts, ba.errors.counts);
  EXPECT_EQ(ab.block, 2u);
  EXPECT_EQ(ba.block, 2u);
}

}  // namespace amplified_test
}  // namespace assay::vm
