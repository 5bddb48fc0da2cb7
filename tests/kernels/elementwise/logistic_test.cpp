// The device's own source, compiled for the host: plain arithmetic, every operation rounded once.
#define __device__
#define __forceinline__ inline
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline size_t __cvta_generic_to_shared(const void*) {
  return 0;
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
#include <gtest/gtest.h>

#include "kernels/elementwise/logistic.cuh"

namespace {

constexpr double u = 0x1p-24;

/// Every `step`-th float from 2^-30 to `largest`, with both signs.
template <typename Visit>
void each_float(float largest, uint32_t step, const Visit& visit) {
  for (uint32_t bits = std::bit_cast<uint32_t>(0x1p-30f); bits <= std::bit_cast<uint32_t>(largest);
       bits += step) {
    visit(std::bit_cast<float>(bits));
    visit(-std::bit_cast<float>(bits));
  }
}

/// |got - exact| beyond what underflow may cost, in units of u |exact|. The host's long double functions are
/// exact to 2^-60.
double error(float got, long double exact) {
  const long double off = std::fabs(static_cast<long double>(got) - exact) - 4 * 0x1p-150L;
  return off <= 0 ? 0 : static_cast<double>(off / std::fabs(exact) / u);
}

struct Worst {
  double worst = 0;
  float at = 0;
  void see(double error, float x) {
    if (!(error <= worst)) worst = error, at = x;
  }
};

TEST(Logistic, ExponentialIsWithinTwoRoundoffsFromTheSmallestSubnormalToOverflow) {
  Worst w;
  each_float(100.0f, 97, [&](float x) {
    if (x < 88.7f) w.see(error(exponential(x), std::exp(static_cast<long double>(x))), x);
    if (x < 0) {
      EXPECT_EQ(falling_exponential(x), exponential(x)) << x;
    }
    EXPECT_EQ(falling_exponential(Sum{x, 0}), exponential(-std::fabs(x))) << x;
  });
  EXPECT_LE(w.worst, 2) << w.at;
  EXPECT_GT(w.worst, 1) << "the sweep saw less than two roundings";
  EXPECT_EQ(exponential(0.0f), 1);
  EXPECT_EQ(exponential(-103.9f), 0x1p-149f);
  for (const float beyond : {-111.0f, -177.0f, -200.0f, -1e38f, -INFINITY}) {
    EXPECT_EQ(exponential(beyond), 0);
    EXPECT_EQ(falling_exponential(beyond), 0);
    EXPECT_EQ(falling_exponential({beyond, beyond * 0x1p-25f}), 0);
    EXPECT_EQ(exponential(-beyond), INFINITY);
  }
  EXPECT_EQ(exponential(89.0f), INFINITY);
  EXPECT_TRUE(std::isnan(exponential(NAN)));
  EXPECT_TRUE(std::isnan(falling_exponential(NAN)));
  EXPECT_TRUE(std::isnan(falling_exponential({NAN, 0})));
}

TEST(Logistic, TheLowPartOfAnArgumentCounts) {
  Worst w;
  each_float(80.0f, 9973, [&](float x) {
    const Sum z = Sum::of(x, x * 0x1.234568p-20f);
    w.see(error(falling_exponential(z), std::exp(-std::fabs(static_cast<long double>(z.high) + z.low))), x);
  });
  EXPECT_LE(w.worst, 2) << w.at;
}

TEST(Logistic, LogOfOnePlusIsWithinItsDeclaredError) {
  Worst w;
  for (uint32_t bits = 1; bits <= std::bit_cast<uint32_t>(1.0f); bits += 397) {
    const float e = std::bit_cast<float>(bits);
    w.see(error(log_one_plus(e), std::log1p(static_cast<long double>(e))), e);
  }
  EXPECT_LE(w.worst, 4.5) << w.at;
  EXPECT_GT(w.worst, 1.5);
  EXPECT_EQ(log_one_plus(0), 0);
}

TEST(Logistic, SoftplusKeepsTheDigitsOfTinyValuesAndStaysWithinItsDeclaredError) {
  Worst w;
  each_float(120.0f, 97, [&](float z) {
    const long double exact =
        std::fmax(z, 0.0f) + std::log1p(std::exp(-std::fabs(static_cast<long double>(z))));
    w.see(error(softplus(z), exact), z);
    EXPECT_EQ(softplus(Sum{z, 0}), softplus(z)) << z;
  });
  EXPECT_LE(w.worst, 9) << w.at;
  EXPECT_GT(w.worst, 2);
  EXPECT_NEAR(softplus(-30.0f) / 9.35762296883929e-14, 1, 1e-6) << "not 0, as log(1 + e^x) in fp32 gives";
  EXPECT_EQ(softplus(0x1.fffffep127f), 0x1.fffffep127f);
}

TEST(Logistic, SigmoidAndItsComplementAreWithinTheirDeclaredError) {
  Worst w;
  each_float(110.0f, 97, [&](float z) {
    const Logistic s = Logistic::of(z);
    EXPECT_EQ(Logistic::of(Sum{z, 0}).at, s.at) << z;
    const long double e = std::exp(-std::fabs(static_cast<long double>(z)));
    w.see(error(z > 0 ? s.at : s.complement, 1 / (1 + e)), z);
    w.see(error(z > 0 ? s.complement : s.at, e / (1 + e)), z);
  });
  EXPECT_LE(w.worst, 5) << w.at;
  EXPECT_GT(w.worst, 1.5);
}

TEST(Logistic, SumsKeepWhatRoundingTakes) {
  Sum sum = {};
  for (int i = 0; i < 1000; ++i) sum.add(0x1p30f), sum.add(1.0f), sum.add(-0x1p30f);
  EXPECT_EQ(sum.value(), 1000);
  EXPECT_EQ(Sum::of(0x1.fffffep127f, 0x1.fffffep127f).low, 0);
}

}  // namespace
