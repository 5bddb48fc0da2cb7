// The dimensions of a case one by one.
#include "fuzz/dimensions.h"

#include <gtest/gtest.h>

#include <set>

#include "fuzz/choice.h"
#include "src/case/parameters.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace {

constexpr uint64_t kDimensionSeed = 20260, kDraws = 300;

/// `draw` changes a case, each time with another stream.
template <typename Draw>
std::vector<Case> many_drawn(const Case& from, const Draw& draw) {
  std::vector<Case> cases;
  for (uint64_t i = 0; i < kDraws; ++i)
    cases.push_back(drawn_from(rc::Random(mixed(kDimensionSeed + i)), [&] {
      Case c = from;
      draw(c);
      return c;
    }));
  return cases;
}

const Operator& op_of_kernel(const Kernel& kernel) {
  return find_operator(kernel.operator_name);
}

TEST(Dimensions, AParameterLiesWithinItsLimitsAndBelowTheOneThatLimitsIt) {
  const Kernel& kernel = find_kernel("lightning_attn.chunk");
  const Feedback nothing;
  const Target target{kernel, op_of_kernel(kernel), nothing};
  std::set<double> layers;
  for (const Case& c : many_drawn({}, [&](Case& x) { draw_parameters(x, target); })) {
    const double layer = parameter_of(c, target.op, "layer_idx"),
                 most = parameter_of(c, target.op, "num_layers");
    EXPECT_GE(layer, 0);
    EXPECT_GE(most, 1);
    EXPECT_LE(layer, most);
    layers.insert(layer);
  }
  EXPECT_GE(layers.size(), 10u);
}

TEST(Dimensions, AScaleIsDrawnOnlyWhereTheOperatorTakesOne) {
  const Feedback nothing;
  for (const auto& [name, takes] : {std::pair{"gla.chunk", true}, {"hgrn.chunk", false}}) {
    const Kernel& kernel = find_kernel(name);
    const Target target{kernel, op_of_kernel(kernel), nothing};
    int64_t given = 0;
    for (const Case& c : many_drawn({}, [&](Case& x) { draw_scale(x, target); }))
      given += c.scale.has_value();
    EXPECT_EQ(given > 0, takes) << name;
  }
}

/// What the scale enters otherwise than as a factor may be an exponent: both signs, far from 1.
TEST(Dimensions, AScaleInsideASoftmaxGoesFarOnBothSides) {
  const Kernel& kernel = find_kernel("gsa.chunk");
  const Feedback nothing;
  const Target target{kernel, op_of_kernel(kernel), nothing};
  double least = 0, most = 0;
  for (const Case& c : many_drawn({}, [&](Case& x) { draw_scale(x, target); }))
    least = std::min(least, c.scale.value_or(0)), most = std::max(most, c.scale.value_or(0));
  EXPECT_LE(least, -128);
  EXPECT_GE(most, 128);
}

TEST(Dimensions, KindsOfValuesAreThoseThatTheOperatorHasAUseFor) {
  const auto has = [](const char* op, const std::string& kind) {
    const auto kinds = drawn_values(find_operator(op));
    return std::any_of(kinds.begin(), kinds.end(), [&](const auto& row) { return row.second == kind; });
  };
  EXPECT_TRUE(has("gla", "lone") && !has("merge_heads", "lone"));
  EXPECT_TRUE(has("delta_rule", "long-keys") && !has("rwkv7", "long-keys") && !has("gla", "long-keys"));
  EXPECT_TRUE(has("rwkv7", "collinear") && !has("gla", "collinear"));
  EXPECT_TRUE(has("gate_softplus", "logits") && !has("gla", "logits"));
}

TEST(Dimensions, StridesOfTheirOwnAreAlwaysThereAndValid) {
  const Kernel kernel = test::subject_kernel();
  Case c = parse_token("gla.subject/B2/T20/H3/K4/V3/fp32/g-fp32/mild/s3");
  for (const Case& x : many_drawn(c, [&](Case& y) { y.layout = drawn_strides(y, op_of_kernel(kernel)); })) {
    EXPECT_FALSE(x.layout.empty());
    EXPECT_NO_THROW(validate(x, op_of_kernel(kernel))) << token_of(x);
  }
}

/// Each pair of formats of a kernel that is compiled on demand costs seconds.
TEST(Dimensions, AKernelWithADefectBeginsWithFewFormats) {
  Kernel kernel = test::subject_kernel();
  Feedback feedback;
  EXPECT_FALSE(begins_with_few_formats({kernel, op_of_kernel(kernel), feedback}));
  kernel.name += "@X1";
  const auto formats = [&] {
    std::set<Dtype> seen;
    const Target target{kernel, op_of_kernel(kernel), feedback};
    for (const Case& c : many_drawn({}, [&](Case& x) { x = fresh(target); })) seen.insert(c.dtype);
    return seen.size();
  };
  EXPECT_EQ(formats(), 2u);
  feedback.drawn["cases"] = 24;
  EXPECT_GT(formats(), 2u);
}

TEST(Dimensions, ACaseDrawnAgainIsACorpusCaseWithAnotherSeedAndFewDimensionsChanged) {
  const Kernel kernel = test::subject_kernel();
  Feedback feedback;
  feedback.corpus = {parse_token("gla.subject/B1/T77/H1/K37/V23/fp32/g-fp32/mild/s3")};
  const Target target{kernel, op_of_kernel(kernel), feedback};
  int64_t same_length = 0, same_widths = 0;
  for (const Case& c : many_drawn({}, [&](Case& x) { x = redrawn(target); })) {
    const bool length = c.T == 77, widths = c.K == 37 && c.V == 23;
    same_length += length, same_widths += widths;
    EXPECT_NE(c.seed, 3u);
  }
  // Of twelve dimensions one or two are drawn again: this one in 1 case of 8, 1/2 1/12 + 1/2 (1 - (11/12)^2).
  // Five standard deviations of 300 draws.
  const double kept = 300 * (1 - 0.125), off = 5 * std::sqrt(300 * 0.125 * 0.875);
  EXPECT_GE(static_cast<double>(same_length), kept - off);
  EXPECT_GE(static_cast<double>(same_widths), kept - off);
  EXPECT_LT(same_length, 300);
}

}  // namespace
}  // namespace assay
