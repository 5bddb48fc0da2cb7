// Values of one kind, against the whole numbers of sixteenths of a spacing written out.
#include "src/verification/compare/alike_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace assay {
namespace alike_values_test {

using Kind = std::pair<int, long long>;
Kind written_out(Dtype dtype, double x) {
  const double spacing = ulp(dtype, x);
  return {std::ilogb(spacing), std::llround(16 * std::fabs(x) / spacing)};
}
uint64_t kind(Dtype dtype, double x) {
  return kind_of(format(dtype), x, ulp(dtype, x));
}

/// Of any size that the format has, and some that are near to each other.
std::vector<double> drawn(Dtype dtype, int count) {
  std::mt19937_64 random(7);
  const Format& f = format(dtype);
  std::uniform_int_distribution<int> exponent(f.min_exponent - f.precision, f.max_exponent);
  std::uniform_real_distribution<double> unit(1, 2);
  std::vector<double> y;
  for (int i = 0; i < count; ++i) {
    y.push_back(std::ldexp(unit(random), i % 2 ? exponent(random) : 0) * (i % 3 ? 1 : -1));
    if (i % 5 == 4) y.push_back(y.back() * (1 + unit(random) * unit_roundoff(dtype) / 32));
  }
  return y;
}

TEST(AlikeValues, AKindIsWhatIsNearerThanASixteenthOfTheSpacing) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::tf32, Dtype::fp32, Dtype::fp64}) {
    std::map<uint64_t, Kind> by_kind;
    std::map<Kind, uint64_t> by_written;
    for (const double x : drawn(dtype, 4000)) {
      const uint64_t here = kind(dtype, x);
      const Kind expected = written_out(dtype, x);
      EXPECT_NE(here, 0);
      EXPECT_EQ(by_kind.emplace(here, expected).first->second, expected) << x;
      EXPECT_EQ(by_written.emplace(expected, here).first->second, here) << x;
    }
    EXPECT_EQ(by_kind.size(), by_written.size());
    EXPECT_GT(by_kind.size(), 1000u);
  }
}

/// As counted by hand.
struct Counted {
  std::map<Kind, double> counts;
  double number = 0;

  void add(double x) { ++counts[written_out(Dtype::bf16, x)], ++number; }
  void expect_equal(const Shares& shares) const {
    double squares = 0, most = 0;
    for (const auto& [of, count] : counts) squares += count * count, most = std::fmax(most, count);
    EXPECT_EQ(shares.collision, squares / (number * number));
    EXPECT_EQ(shares.largest, most / number);
  }
};

TEST(AlikeValues, SharesAreThoseOfTheirCounts) {
  const Format& f = format(Dtype::bf16);
  AlikeValues all;
  Counted of_all;
  for (int group = 0; group < 3; ++group) {
    AlikeValues values;
    for (int part = 0; part < 3; ++part) {
      Counted of_part;
      values.begin_part();
      EXPECT_EQ(values.of_part().collision, 0);
      std::vector<double> run, spacing;
      for (const double x : drawn(Dtype::bf16, 500 << (group + part))) {
        run.push_back(x), of_part.add(x), of_all.add(x);
        if (run.size() % 7 == 0) run.push_back(0);  // is stored as it is
      }
      for (const double x : run) spacing.push_back(ulp(Dtype::bf16, x));
      const size_t first = run.size() / 3;
      values.add(f, std::span(run).first(first), spacing.data());
      values.add(f, std::span(run).subspan(first), spacing.data() + first);
      of_part.expect_equal(values.of_part());
    }
    all.add(values);
  }
  of_all.expect_equal(all.of_all());
  EXPECT_EQ(AlikeValues().of_all().collision, 0);
}

TEST(AlikeValues, RoundingsOfOneKindMoveADirectionTogether) {
  const Format& f = format(Dtype::bf16);
  const double spacing = ulp(Dtype::bf16, 1);
  KindsAlong one, other;
  const auto add = [&](KindsAlong& to, std::vector<KindsAlong::Rounding> roundings) { to.add(f, roundings); };
  add(one, {{1, spacing, 3, 2}, {-1, spacing, 1, 5}});  // of opposite signs: 3 - 1
  add(other, {{1, spacing, 4, 1}, {1.5, spacing, 7, 3}, {1.25, spacing, 0, 9}});
  one.add(other);
  EXPECT_EQ(one.variance(), 36.0 * 5 + 49.0 * 3);
}

}  // namespace alike_values_test
}  // namespace assay
