#include "src/base/vm/interpolation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

namespace assay::vm {
namespace interpolation_test {

/// The squarer as a sum of partial products, columns below 2^19 left out.
uint32_t sum_of_kept_products(uint32_t x) {
  uint64_t sum = 0;
  for (int k = 0; k < 17; k++)
    for (int l = k; l < 17; l++) {
      const int column = k == l ? 2 * k : k + l + 1;
      if (column >= 19 && (x >> k & 1) && (x >> l & 1)) sum += uint64_t{1} << column;
    }
  return static_cast<uint32_t>(sum >> 19);
}

TEST(Interpolation, TheSquareIsTheSumOfTheKeptProducts) {
  for (uint32_t x = 0; x < 1u << 17; x++) ASSERT_EQ(truncated_square(x), sum_of_kept_products(x)) << x;
}

struct Function {
  const char* name;
  std::span<const Segment> segments;
  int32_t bias;
  double (*place)(size_t segment, double u);  ///< the argument at u in [0, 1) of a segment
  double (*exact)(double);
};

double in_binades(size_t segment, double u, size_t per_binade) {
  return std::ldexp(1 + (static_cast<double>(segment % per_binade) + u) / static_cast<double>(per_binade),
                    static_cast<int>(segment / per_binade));
}

/// Rows in their places: one row further the function differs by more than 2^-9 somewhere in the table's
/// reach, while the hardware's own error is nowhere near 2^-16. Bits are compared in approximate_test.cpp.
TEST(Interpolation, SegmentsFollowTheirFunctions) {
  const Function functions[] = {
      {"1/m", reciprocal_segments, reciprocal_bias, [](size_t s, double u) { return in_binades(s, u, 128); },
       [](double m) { return 1 / m; }},
      {"1/sqrt(m)", inverse_root_segments, inverse_root_bias,
       [](size_t s, double u) { return in_binades(s, u, 64); }, [](double m) { return 1 / std::sqrt(m); }},
      {"sqrt(m)", root_segments, root_bias, [](size_t s, double u) { return in_binades(s, u, 64); },
       [](double m) { return std::sqrt(m); }},
      {"2^f / 2", exponential_segments, exponential_bias,
       [](size_t s, double u) { return (static_cast<double>(s) + u) / 64; },
       [](double f) { return std::exp2(f) / 2; }},
      {"1 + log2(m)", logarithm_segments, logarithm_bias,
       [](size_t s, double u) { return in_binades(s, u, 64); }, [](double m) { return 1 + std::log2(m); }},
      {"sin", sine_segments, 0, [](size_t s, double u) { return (static_cast<double>(s) + u) / 64; },
       [](double f) { return std::sin(M_PI_2 * f); }}};
  for (const Function& f : functions)
    for (size_t s = 0; s < f.segments.size(); s++)
      for (uint32_t x = 0; x < 1u << 17; x += 4369) {
        const double value = std::ldexp(static_cast<double>(interpolate(f.segments[s], x, f.bias)), -40);
        const double exact = f.exact(f.place(s, std::ldexp(x, -17)));
        EXPECT_LT(std::fabs(value - exact), 0x1p-16) << f.name << ", segment " << s << ", place " << x;
      }
}

}  // namespace interpolation_test
}  // namespace assay::vm
