#include "src/case/row_draws.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "src/case/decay_profiles.h"
#include "src/case/random.h"
#include "src/case/values.h"

namespace assay {
namespace {

/// Widths around those of every register, and more than one part of a row.
constexpr int64_t kCounts[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130};

/// Bits, so that signs of zeros count.
std::vector<uint64_t> bits(const std::vector<double>& values) {
  std::vector<uint64_t> words;
  for (const double x : values) words.push_back(std::bit_cast<uint64_t>(x));
  return words;
}

/// The function and its scalar twin, at the same arguments.
void expect_same(const std::vector<double>& arguments, void (*rows)(int64_t, double*), double (*one)(double),
                 std::string_view instruction_set) {
  std::vector<double> expected = arguments, got = arguments;
  for (double& x : expected) x = one(x);
  rows(static_cast<int64_t>(got.size()), got.data());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint64_t>(got[i]), std::bit_cast<uint64_t>(expected[i]))
        << arguments[i] << " by " << instruction_set;
}

double log_sigmoid(double x) {
  return x < 0 ? x - portable_log(1 + portable_exp(x)) : -portable_log(1 + portable_exp(-x));
}

TEST(RowDraws, EveryInstructionSetGivesTheBitsOfOneElement) {
  const RandomStream random(7, "any");
  std::vector<double> chances, logits;
  for (int64_t i = 0; i < 60000; ++i) chances.push_back(random.uniform({0, i, 0, 0}));
  for (const double edge : {0.02425, 1 - 0.02425, 0.5})  // where the quantile's two forms meet
    for (const double next : {0.0, 1.0}) chances.insert(chances.end(), {edge, std::nextafter(edge, next)});
  chances.insert(chances.end(), {0x1p-53, 1 - 0x1p-53});
  for (int64_t i = 0; i < 60000; ++i) {
    const double size = std::ldexp(700.0, -static_cast<int>(random.below(60, {0, i, 1, 0})));
    logits.push_back((2 * random.uniform({0, i, 2, 0}) - 1) * size);
  }
  logits.insert(logits.end(), {0.0, -0.0, 700, -700, 0x1p-1074});
  for (const RowDraws& row : runnable_row_draws()) {
    expect_same(chances, row.normal_quantiles, &normal_quantile, row.instruction_set);
    expect_same(logits, row.log_sigmoids, &log_sigmoid, row.instruction_set);
  }
}

TEST(RowDraws, UniformsCountFromAnyChannel) {
  const RandomStream random(3, "k");
  for (const int64_t count : kCounts) {
    std::vector<double> expected, got(static_cast<size_t>(count)), normals = got, each;
    for (int64_t c = 0; c < count; ++c) {
      expected.push_back(random.uniform({1, 2, 3, 40 + c}));
      each.push_back(random.normal({1, 2, 3, 40 + c}));
    }
    random.uniforms({1, 2, 3, 40}, count, got.data());
    random.normals({1, 2, 3, 40}, count, normals.data());
    EXPECT_EQ(bits(got), bits(expected)) << count;
    EXPECT_EQ(bits(normals), bits(each)) << count;
  }
}

TEST(RowDraws, EveryKindsRowIsItsElements) {
  const RandomStream random(11, "v");
  const Case drawn;
  int rows = 0;
  for (const ValueKind& kind : value_kinds()) {
    if (!kind.draw_row) continue;
    ++rows;
    for (const int64_t count : kCounts) {
      std::vector<double> expected, got(static_cast<size_t>(count));
      for (int64_t c = 0; c < count; ++c)
        expected.push_back(kind.draw({random, drawn, "v", {0, 5, 1, 3 + c}, 200, false}));
      kind.draw_row({random, drawn, "v", {0, 5, 1, 3}, 200, false}, count, got.data());
      EXPECT_EQ(bits(got), bits(expected)) << kind.name << ", " << count;
    }
  }
  EXPECT_GE(rows, 1);
}

TEST(RowDraws, EveryProfilesRowIsItsElements) {
  const RandomStream random(12, "g");
  int rows = 0;
  for (const DecayProfile& profile : decay_profiles()) {
    if (!profile.draw_row) continue;
    ++rows;
    std::vector<std::string> texts = {std::string(profile.name)};
    for (const auto& variant : profile.variants) texts.push_back(texts[0] + ":" + std::string(variant));
    for (const std::string& text : texts) {
      const ParsedDecay parsed = parse_decay(text);
      for (const int64_t count : kCounts) {
        std::vector<double> expected, got(static_cast<size_t>(count));
        for (int64_t c = 0; c < count; ++c)
          expected.push_back(profile.draw({random, parsed.arguments, {2, 9, 1, c}, 30}));
        profile.draw_row({random, parsed.arguments, {2, 9, 1, 0}, 30}, count, got.data());
        EXPECT_EQ(bits(got), bits(expected)) << text << ", " << count;
      }
    }
  }
  EXPECT_GE(rows, 3);
}

}  // namespace
}  // namespace assay
