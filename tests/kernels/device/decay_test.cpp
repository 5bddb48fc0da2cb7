// The device's own source, compiled for the host: decay.cuh holds plain arithmetic but for ex2, which the
// machine gives.
#define __device__
#define __forceinline__ inline
#include <cmath>
#include <cstddef>
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline size_t __cvta_generic_to_shared(const void*) {
  return 0;
}
#include <gtest/gtest.h>

#include <bit>

#include "kernels/device/decay.cuh"
#include "src/base/vm/approximate.h"

namespace {

constexpr double u = 0x1p-24;

double ex2(float x) {
  return std::bit_cast<float>(assay::vm::ex2_approx_ftz_f32(std::bit_cast<uint32_t>(x)));
}

double relative_error(double got, double exact) {
  return std::fabs(got - exact) / exact;
}

// The hardware reads |x| to 2^-23: both ends of every such step of (-1, 0], and then of (-3, -2].
TEST(Decay, PowerOfTwoIsWithinItsDeclaredError) {
  double worst = 0;
  for (int step = 0; step < 1 << 23; ++step)
    for (const float base : {0.0f, 2.0f}) {
      const float near = base + std::ldexp(static_cast<float>(step), -23);
      const float far = std::nextafter(base + std::ldexp(static_cast<float>(step + 1), -23), 0.0f);
      for (const float x : {-near, -far})
        worst = std::max(worst, relative_error(ex2(x), std::exp2(static_cast<double>(x))));
    }
  EXPECT_LE(worst, 0x1p-22);
  EXPECT_GT(worst, 0x1p-25) << "the sweep saw no error at all";
  EXPECT_EQ(ex2(0.0f), 1);
  EXPECT_EQ(ex2(-1e30f), 0);
  EXPECT_EQ(ex2(-INFINITY), 0);
}

TEST(Decay, PowerOfTwoMinusOneIsWithinFourRoundoffs) {
  double worst = 0;
  for (uint32_t bits = std::bit_cast<uint32_t>(0x1p-40f); bits <= std::bit_cast<uint32_t>(0.5f); bits += 37) {
    const float y = -std::bit_cast<float>(bits);
    const double exact = std::expm1(static_cast<double>(y) * 0x1.62e42fefa39efp-1);
    worst = std::max(worst, std::fabs((power_of_two_minus_one(y) - exact) / exact));
  }
  EXPECT_LE(worst, 4 * u);
  EXPECT_GT(worst, u) << "the sweep saw less than two roundings";
  EXPECT_EQ(power_of_two_minus_one(0.0f), 0);
}

TEST(Decay, LogTwoOfEIsTheNearestFloat) {
  EXPECT_EQ(log2_e, static_cast<float>(0x1.71547652b82fep+0));
}

}  // namespace
