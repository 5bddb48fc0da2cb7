#include "src/case/operator_fit.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Tensor zeros(Dtype dtype, const std::vector<int64_t>& shape) {
  std::vector<Axis> axes;
  for (const int64_t size : shape) axes.push_back({"", size});
  return Tensor("", dtype, axes);
}

Case short_case() {
  Case c;
  c.kernel = "none";
  return c;
}

/// q, k, v [1,30,2,..].
TensorMap attention() {
  return {{"q", zeros(Dtype::bf16, {1, 30, 2, 16})},
          {"k", zeros(Dtype::bf16, {1, 30, 2, 16})},
          {"v", zeros(Dtype::bf16, {1, 30, 2, 8})}};
}

const OperatorFit& fit_of(const std::vector<OperatorFit>& fits, std::string_view name) {
  return *std::find_if(fits.begin(), fits.end(), [&](const OperatorFit& fit) { return fit.name == name; });
}

TEST(OperatorFit, EveryOperatorOfTheTableIsJudgedOnce) {
  const auto fits = fit_operators(attention(), short_case(), 0, "x");
  EXPECT_EQ(fits.size(), operators().size());
  EXPECT_TRUE(fit_of(fits, "gla").fits);
  EXPECT_EQ(fit_of(fits, "gla").case_.K, 16);
  EXPECT_FALSE(fit_of(fits, "rwkv6").fits);
  EXPECT_EQ(fit_of(fits, "rwkv6").missing, (std::vector<std::string>{"r", "w", "u"}));
  EXPECT_EQ(fit_of(fits, "rwkv6").unused, (std::vector<std::string>{"q"}));
}

TEST(OperatorFit, AGateOfOneShapeFitsTheOperatorThatHasIt) {
  TensorMap raw = attention();
  raw["g"] = zeros(Dtype::fp32, {1, 30, 2});
  const auto fits = fit_operators(raw, short_case(), 0, "x");
  EXPECT_TRUE(fit_of(fits, "simple_gla").fits);
  EXPECT_FALSE(fit_of(fits, "gla").fits);
  EXPECT_NE(fit_of(fits, "gla").complaint.find("a per-head gate where a per-channel one is expected"),
            std::string::npos)
      << fit_of(fits, "gla").complaint;
  bool ended = false;  // those that fit come first, linear_attn with fewer tensors among them
  for (const OperatorFit& fit : fits) {
    EXPECT_FALSE(ended && fit.fits) << fit.name;
    ended |= !fit.fits;
  }
}

TEST(OperatorFit, CotangentsMakeTheDirectionBackward) {
  TensorMap raw = attention();
  EXPECT_EQ(fit_of(fit_operators(raw, short_case(), 0, "x"), "gla").case_.direction, Direction::forward);
  raw["do"] = zeros(Dtype::bf16, {1, 30, 2, 8});
  const auto fits = fit_operators(raw, short_case(), 0, "x");
  EXPECT_TRUE(fit_of(fits, "gla").fits);
  EXPECT_EQ(fit_of(fits, "gla").case_.direction, Direction::both);
  EXPECT_TRUE(fit_of(fits, "gla").unused.empty());
}

TEST(OperatorFit, AnotherOrderIsSaid) {
  TensorMap raw = attention();
  raw["k"] = zeros(Dtype::bf16, {1, 2, 30, 16});
  raw["initial_state"] = zeros(Dtype::fp32, {1, 2, 16, 8});
  const auto fits = fit_operators(raw, short_case(), 0, "x");
  ASSERT_EQ(fit_of(fits, "gla").notes.size(), 1u);
  EXPECT_NE(fit_of(fits, "gla").notes[0].find("k: heads-first"), std::string::npos);
}

}  // namespace
}  // namespace assay
