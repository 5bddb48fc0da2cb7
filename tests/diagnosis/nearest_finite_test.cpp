#include "src/verification/diagnosis/nearest_finite.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

TensorMap inputs_with(double value) {
  TensorMap inputs;
  inputs["g"] = Tensor("g", Dtype::fp32, {{"T", 4}});
  inputs["g"].set(2, value);
  return inputs;
}

/// Finite while `finite(value)` holds; counts its runs and allows `limit` of them.
Replay replay_of(std::function<bool(double)> finite, int* runs, int limit = 1000) {
  return [=](const TensorMap& inputs) -> std::optional<bool> {
    if ((*runs)++ >= limit) return std::nullopt;
    return finite(inputs.at("g").value(2));
  };
}

TEST(NearestFinite, TheLargestThreeDigitMagnitudeBelowTheThresholdIsFound) {
  struct Row {
    double start, threshold;
    const char* expected;
  };
  for (const Row& r : {Row{-90, 88.7228, "-88.7"}, Row{-1e4, 88.7228, "-88.7"}, Row{130, 128, "127"},
                       Row{-0.5, 0.01235, "-0.0123"}, Row{-INFINITY, 88.7228, "-88.7"}}) {
    int runs = 0;
    const std::string found = nearest_finite(
        inputs_with(r.start), "g", 2,
        replay_of([&](double x) { return (x < 0) == (r.start < 0) && std::fabs(x) < r.threshold; }, &runs));
    EXPECT_EQ(found, r.expected) << "from " << r.start;
    EXPECT_LE(runs, 24) << "from " << r.start;
  }
}

TEST(NearestFinite, ALargerMagnitudeIsTriedWhereNoSmallerOneHelps) {
  int runs = 0;
  const std::string found =
      nearest_finite(inputs_with(-1), "g", 2, replay_of([](double x) { return x <= -5; }, &runs));
  EXPECT_EQ(found, "-5");
}

TEST(NearestFinite, AnInputThatDoesNotMatterHasNone) {
  int runs = 0;
  EXPECT_EQ(nearest_finite(inputs_with(-90), "g", 2, replay_of([](double) { return false; }, &runs)), "");
  EXPECT_EQ(nearest_finite(inputs_with(0), "g", 2, replay_of([](double) { return true; }, &runs)), "");
}

TEST(NearestFinite, WhenReplaysRunOutTheBestKnownFiniteValueStands) {
  int runs = 0;
  const std::string found =
      nearest_finite(inputs_with(-90), "g", 2, replay_of([](double x) { return x > -88.7228; }, &runs, 6));
  ASSERT_NE(found, "");
  EXPECT_GT(std::stod(found), -88.7228);
}

}  // namespace
}  // namespace assay
