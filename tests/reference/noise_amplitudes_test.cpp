// What amplitudes and rests make of declared numbers, against roundings that such numbers stand for.
#include "reference/noise_amplitudes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace assay {
namespace noise_amplitudes_test {

constexpr double single = 0x1p-22;

Arithmetic split(double truncated) {
  Arithmetic a;
  a.chunk = 64, a.truncated = truncated, a.single = single;
  return a;
}

TEST(NoiseAmplitudes, CoverEveryListOfRoundingsThatAddsUpToWhatIsDeclared) {
  std::mt19937_64 random(7);
  for (int list = 0; list < 200; ++list) {
    std::uniform_real_distribution<double> part(0, single);
    double sum = 0, squares = 0;
    const int count = 1 + list % 40;
    for (int i = 0; i < count; ++i) {
      const double rounding = list % 2 == 0 ? single : part(random);
      sum += rounding, squares += rounding * rounding;
    }
    Arithmetic a = split(single);
    a.readout = sum;
    const double o = noise_amplitudes(a, 1, true).o;
    EXPECT_GE(o * o, squares * (1 - 0x1p-20)) << list;
    if (list % 2 == 0) {
      EXPECT_LE(o * o, squares * (1 + 0x1p-20)) << list;
    }
  }
}

TEST(NoiseAmplitudes, OfSplitOperandsNeedALargestRounding) {
  Arithmetic a;
  a.chunk = 64, a.readout = a.write = a.boundary = 0x1p-20;
  const NoiseAmplitudes none = noise_amplitudes(a, 1, true);
  EXPECT_EQ(std::max({none.key, none.o, none.S_end}), 0);
  a.single = single;
  const NoiseAmplitudes some = noise_amplitudes(a, 1, true);
  EXPECT_EQ(some.key, 0x1p-21f);
  EXPECT_EQ(some.o, 0x1p-21f);
  EXPECT_EQ(some.S_end, 0x1p-21f);
}

TEST(NoiseRests, OfSplitOperandsAreHalfTheTruncationsAndWhatDecaysAdd) {
  Arithmetic a = split(0x1p-18);
  a.write = a.readout = a.boundary = 0x1p-20;
  EXPECT_EQ(noise_rests(a, 1, 9, true).o, 0x1p-19);
  a.readout_decayed = 0x1p-21, a.crossing = 0x1p-24, a.decay_per_nat = 0x1p-24;
  EXPECT_EQ(noise_rests(a, 1, 9, false).o, 0x1p-19);
  EXPECT_EQ(noise_rests(a, 1, 9, true).o, 0x1p-19 + 0x1p-21 + 9 * 0x1p-24 + 4 * 0x1p-24);
}

TEST(NoiseRests, OfEachGradientAreThoseOfItsOwnPath) {
  AdjointArithmetic a;
  a.state = split(0x1p-18), a.adjoint = split(0x1p-19);
  a.state.readout_decayed = 0x1p-20, a.adjoint.readout_decayed = 0x1p-21, a.value_readout_decayed = 0x1p-22;
  const NoiseRests rests = noise_rests(a, 1, 0, true);
  EXPECT_EQ(rests.dq, 0x1p-19 + 0x1p-20);
  EXPECT_EQ(rests.dk, 0x1p-20 + 0x1p-21);
  EXPECT_EQ(rests.dv, 0x1p-20 + 0x1p-22);
}

TEST(NoiseRests, OfRoundedOperandsLeaveTheirRoundingsOut) {
  constexpr double u = 0x1p-8;
  AdjointArithmetic a;
  a.state.chunk = a.adjoint.chunk = 64;
  a.state.readout = u;
  EXPECT_LT(noise_rests(a, u, 0, true).dq, 0x1p-40);
  a.state.readout = u + 0x1p-20;
  const NoiseRests rests = noise_rests(a, u, 0, true);
  EXPECT_GT(rests.dq, 0x1.fp-21);
  EXPECT_EQ(rests.dq, rests.dg);
}

}  // namespace noise_amplitudes_test
}  // namespace assay
