#include "reference/exact_grid.h"

#include <gtest/gtest.h>

#include "tests/reference/random_problem.h"

namespace assay {
namespace {

Tensor values(const char* name, std::vector<double> x) {
  Tensor tensor(name, Dtype::fp32, {{"T", static_cast<int64_t>(x.size())}});
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, x[static_cast<size_t>(i)]);
  return tensor;
}

TEST(ExactGrid, allows_sums_up_to_53_bits_of_the_common_unit_and_no_further) {
  const Tensor q = values("q", {1, 3, -2}), k = values("k", {0.5, 4, 0}), v = values("v", {0.25, 8, 1});
  const ExactGrid grid(q, k, v, nullptr, nullptr, 2);
  EXPECT_TRUE(grid.exact(0x1p49, 1));  // states are multiples of 2^-3: up to 2^50
  EXPECT_FALSE(grid.exact(0x1p50, 1));
  EXPECT_FALSE(grid.exact(0x1p49, 4));  // outputs too
  EXPECT_TRUE(grid.exact(0x1p49, 0));
  const Tensor S0 = values("initial_state", {0x1p-10});
  EXPECT_FALSE(ExactGrid(q, k, v, nullptr, &S0, 2).exact(0x1p49, 0));
}

TEST(ExactGrid, allows_nothing_with_a_decay_a_scale_off_the_grid_or_values_that_are_not_finite) {
  const Tensor one = values("q", {1}), zero = values("g", {0, 0}), decay = values("g", {0, -1}),
               bad = values("v", {NAN});
  EXPECT_TRUE(ExactGrid(one, one, one, &zero, nullptr, 0.5).exact(1, 1));
  EXPECT_FALSE(ExactGrid(one, one, one, &decay, nullptr, 0.5).exact(1, 1));
  EXPECT_FALSE(ExactGrid(one, one, one, nullptr, nullptr, 0.7).exact(1, 1));
  EXPECT_FALSE(ExactGrid(one, one, bad, nullptr, nullptr, 0.5).exact(1, 1));
}

TEST(ExactGrid, leaves_scales_that_could_underflow_to_the_radius) {
  Tensor x("q", Dtype::fp32, {{"T", 1}});
  x.set(0, 3);
  EXPECT_TRUE(ExactGrid(x, x, x, nullptr, nullptr, 0x1p-20).exact(9, 3));
  EXPECT_FALSE(ExactGrid(x, x, x, nullptr, nullptr, 0x1p-1000).exact(9, 3));
}

TEST(AdjointGrid, allows_each_gradient_53_bits_of_the_product_of_its_factors_grids) {
  const Tensor q = values("q", {2}), k = values("k", {0.5}), v = values("v", {0.25, 8}),
               d_o = values("do", {4});
  const Tensor u = values("u", {0x1p-5});
  // S on 2^-3, G on 2 * 2 * 4 = 2^4; dq on 2^0, dk 2^2, dv 2^3, dg 2^1, dS_0 2^4, du = v do q k on 2^1. With
  // u on 2^-5 dq also has v do u k, dk v do u q, dv do u q k.
  const int exponents[2][6] = {{0, 2, 3, 1, 4, 1}, {-5, -3, -2, 1, 4, 1}};
  for (const bool bonus : {false, true}) {
    const AdjointGrid grid(q, k, v, d_o, nullptr, nullptr, nullptr, bonus ? &u : nullptr, 2);
    for (int i = 0; i < 6; ++i) {
      const int exponent = exponents[bonus][i];
      EXPECT_TRUE(grid.exact(i, 1, 1, std::ldexp(0.99, exponent + 53))) << i;
      EXPECT_FALSE(grid.exact(i, 1, 1, std::ldexp(1.0, exponent + 53))) << i;
      EXPECT_FALSE(grid.exact(i, 0x1p50, 1, 1)) << i;
      EXPECT_FALSE(grid.exact(i, 1, 0x1p57, 1)) << i;
    }
  }
  const Tensor dS = values("dfinal_state", {0x1p-10}), decay = values("g", {-1});
  EXPECT_FALSE(AdjointGrid(q, k, v, d_o, nullptr, nullptr, &dS, nullptr, 2).exact(1, 1, 1, 0x1p50));
  EXPECT_FALSE(AdjointGrid(q, k, v, d_o, &decay, nullptr, nullptr, nullptr, 2).exact(0, 0, 0, 0));
  EXPECT_FALSE(AdjointGrid(q, k, v, d_o, nullptr, nullptr, nullptr, nullptr, 3).exact(0, 0, 0, 0));
}

}  // namespace
}  // namespace assay
