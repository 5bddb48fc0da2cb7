#include "reference/gated_form.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/exponential.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

FixedDecay halved_by_head(const Problem&, int64_t head) {
  return {DoubleDouble{std::ldexp(1.0, -static_cast<int>(head)), 0},
          -0.6931471805599453 * static_cast<double>(head)};
}

struct Decays {
  std::vector<double> g, a;

  Decays(const GatedTensors& x, const Problem& p, int64_t h, int64_t first, int64_t tokens)
      : g(static_cast<size_t>(tokens * p.sizes.K)), a(g) {
    x.read_decays({0, h, 0, p.sizes.T}, first, tokens, g.data(), a.data());
  }
};

class Forms : public testing::Test {
 protected:
  void SetUp() override { draw_problem({1, 6, 2, 3, 4}, 1, p_); }
  /// A tensor of the same problem under the name `gate`.
  void add(const char* name, std::vector<Axis> axes) {
    std::mt19937_64 random(7);
    p_.inputs[name] = draw_tensor(name, Dtype::fp32, std::move(axes), random);
    Tensor& tensor = p_.inputs[name];
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, -std::fabs(tensor.value(i)));
  }
  RandomProblem p_;
};

TEST_F(Forms, read_a_gate_per_channel_as_it_lies) {
  const GatedTensors x(p_.problem, {.gate = "g"});
  const Decays d(x, p_.problem, 1, 2, 3);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_EQ(d.g[static_cast<size_t>(t * 3 + c)], p_.at("g").value(((2 + t) * 2 + 1) * 3 + c));
      EXPECT_EQ(d.a[static_cast<size_t>(t * 3 + c)], exponential(d.g[static_cast<size_t>(t * 3 + c)]));
    }
  EXPECT_TRUE(x.decays());
  EXPECT_EQ(x.gate_columns(), 3);
}

TEST_F(Forms, repeat_a_gate_per_token_in_every_channel) {
  add("scalar", {{"B", 1}, {"T", 6}, {"H", 2}});
  const GatedTensors x(p_.problem, {.gate = "scalar", .per_channel = false});
  const Decays d(x, p_.problem, 0, 0, 6);
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(d.g[i], p_.at("scalar").value(static_cast<int64_t>(i / 3) * 2));
  EXPECT_EQ(x.gate_columns(), 1);
}

TEST_F(Forms, repeat_a_gate_per_head_and_a_fixed_one_everywhere) {
  add("head", {{"H", 2}});
  const GatedTensors given(p_.problem, {.per_channel = false, .head_gate = "head"}),
      fixed(p_.problem, {.fixed = halved_by_head});
  for (int64_t h = 0; h < 2; ++h) {
    const Decays a(given, p_.problem, h, 0, 6), b(fixed, p_.problem, h, 0, 6);
    for (double g : a.g) EXPECT_EQ(g, p_.at("head").value(h));
    for (double weight : b.a) EXPECT_EQ(weight, std::ldexp(1.0, -static_cast<int>(h)));
  }
  EXPECT_FALSE(given.fixed_weight(1).has_value());
  EXPECT_EQ(fixed.fixed_weight(1)->hi, 0.5);
}

TEST_F(Forms, without_a_gate_decay_nothing) {
  const GatedTensors x(p_.problem, {});
  const Decays d(x, p_.problem, 0, 0, 6);
  for (double weight : d.a) EXPECT_EQ(weight, 1);
  EXPECT_FALSE(x.decays() || x.gated() || x.exclusive());
}

TEST_F(Forms, refuse_two_gates_that_stand_for_each_other_and_tensors_of_another_size) {
  add("head", {{"H", 2}});
  EXPECT_THROW(GatedTensors(p_.problem, {.gate = "g", .head_gate = "head"}), BadInput);
  add("short", {{"H", 1}});
  EXPECT_THROW(GatedTensors(p_.problem, {.head_gate = "short"}), BadInput);
  EXPECT_THROW(GatedTensors(p_.problem, {.bonus = "u"}), BadInput);
}

}  // namespace
}  // namespace assay
