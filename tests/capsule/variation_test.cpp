#include "src/capsule/variation.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace variation_test {

Capsule capsule(const DrawnRange& range) {
  Capsule c;
  c.seed = 3;
  Tensor& x = c.inputs["x"] = Tensor("x", Dtype::fp32, {{"n", 20}});
  for (int64_t i = 0; i < 20; ++i) x.set(i, 1 + static_cast<double>(i) / 20);
  c.drawn["x"] = range;
  return c;
}
Capsule varied(const DrawnRange& range, const std::string& text) {
  Capsule c = capsule(range);
  vary(c, text);
  return c;
}

TEST(Variation, StaysWithinWhatTheLaunchFileSays) {
  const DrawnRange range{true, -2, 5, false};
  for (const std::string& name : variations_of(capsule(range), "x")) {
    const Capsule made = varied(range, "x=" + name);
    for (int64_t i = 0; i < 20; ++i) {
      const double value = made.inputs.at("x").value(i);
      EXPECT_TRUE(value >= -2 && value <= 5) << name << " " << value;
    }
  }
  DrawnRange positive;
  positive.positive = true;
  const auto names = variations_of(capsule(positive), "x");
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names)
    for (int64_t i = 0; i < 20; ++i)
      EXPECT_GT(varied(positive, "x=" + name).inputs.at("x").value(i), 0) << name;
}

TEST(Variation, ASpikeIsOneElementTheSameForTheSameSeed) {
  const Capsule once = varied({}, "x=spike"), again = varied({}, "x=spike");
  EXPECT_EQ(once.inputs.at("x").data, again.inputs.at("x").data);
  int moved = 0;
  for (int64_t i = 0; i < 20; ++i) moved += once.inputs.at("x").value(i) >= 64;
  EXPECT_EQ(moved, 1);
}

TEST(Variation, WhatThereIsNotIsSaid) {
  EXPECT_THROW(varied({}, "y=spike"), BadInput);
  EXPECT_THROW(varied({}, "x=wild"), BadInput);
  EXPECT_THROW(varied({}, "x"), BadInput);
}

}  // namespace variation_test
}  // namespace assay
