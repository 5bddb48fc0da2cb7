// Enclosures of rwkv7 at growing precision: they overlap, become narrow, and are exact where nothing rounds.
#include <gtest/gtest.h>

#include <map>

#include "reference/operators/rwkv7.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace bounds_rwkv7_enclosure_test {

constexpr int kLevels = 3;
using Enclose = bool (*)(const SliceProblem&, int, SliceBalls&);

SliceProblem slice_of(const RandomProblem& p) {
  const Operator& op = find_operator("rwkv7");
  return read_slice(p.problem, op.inputs, op.outputs, op.parameters, Slice{0, 0, 0, p.problem.sizes.T}, true);
}

void draw(uint64_t seed, RandomProblem& p) {
  RandomShape shape;
  shape.T = 24, shape.cotangents = true;
  draw_problem_of(find_operator("rwkv7"), "logsigmoid", shape, seed, p);
}

TEST(Rwkv7Enclosure, of_two_precisions_overlap_and_each_is_narrower) {
  for (const Enclose enclose : {&Rwkv7::enclose_forward, &Rwkv7::enclose_adjoint})
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      RandomProblem p;
      draw(seed, p);
      const SliceProblem x = slice_of(p);
      std::vector<SliceBalls> y(kLevels);
      for (int level = 0; level < kLevels; ++level)
        ASSERT_TRUE(enclose(x, level, y[static_cast<size_t>(level)]));
      SliceBalls none;
      EXPECT_FALSE(enclose(x, kLevels, none));
      for (size_t out = 0; out < y[0].size(); ++out)
        for (size_t i = 0; i < y[0][out].size(); ++i) {
          const Ball<double>&coarse = y[0][out][i], &fine = y[1][out][i], &finest = y[2][out][i];
          EXPECT_LE(std::fabs(coarse.mid - fine.mid), coarse.rad + fine.rad) << "seed " << seed;
          EXPECT_LE(std::fabs(fine.mid - finest.mid), fine.rad + finest.rad) << "seed " << seed;
          // A double holds the middle: half of its last bit is left of the radius at most.
          EXPECT_LE(finest.rad, 0x1p-52 * std::fabs(finest.mid) + 1e-300) << "seed " << seed;
        }
    }
}

/// e^-1 and e^-0.5 e^-0.5 of 2^80: what is read is their difference, 0, and all that each precision has of it
/// are its roundings.
TEST(Rwkv7Enclosure, holds_what_cancels) {
  RandomShape shape;
  shape.T = 2, shape.K = 2, shape.V = 1, shape.cotangents = true;
  RandomProblem p;
  draw_problem_of(find_operator("rwkv7"), "none", shape, 1, p);
  const std::map<std::string, std::vector<double>> values = {
      {"r", {0, 0, 1, -1}}, {"w", {-1, -0.5, 0, -0.5}}, {"initial_state", {0x1p80, 0x1p80}}};
  for (auto& [name, tensor] : p.inputs)
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.set(i, values.contains(name) ? values.at(name)[static_cast<size_t>(i)] : 0);
  p.problem.scale = 1;
  double before = 0;
  for (int level = 0; level < kLevels; ++level) {
    SliceBalls y;
    ASSERT_TRUE(Rwkv7::enclose_forward(slice_of(p), level, y));
    const Ball<double>& o = y[Rwkv7::Out::o][1];
    EXPECT_NE(o.mid, 0) << "level " << level;
    EXPECT_LE(std::fabs(o.mid), o.rad) << "level " << level;
    if (level > 0) {
      EXPECT_LT(o.rad, 0x1p-60 * before) << "level " << level;
    }
    before = o.rad;
  }
}

/// Small whole numbers, no decay: MPFR rounds nothing and its radius is what a double cannot hold, none.
TEST(Rwkv7Enclosure, is_a_point_where_no_operation_rounds) {
  RandomProblem p;
  draw(3, p);
  for (auto& [name, tensor] : p.inputs)
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.set(i, name == "w" ? 0 : static_cast<double>(i % 3 - 1));
  p.problem.scale = 1;
  const SliceProblem x = slice_of(p);
  for (const Enclose enclose : {&Rwkv7::enclose_forward, &Rwkv7::enclose_adjoint}) {
    SliceBalls y;
    ASSERT_TRUE(enclose(x, 2, y));
    for (const auto& out : y)
      for (const Ball<double>& ball : out) EXPECT_EQ(ball.rad, 0) << ball.mid;
  }
}

}  // namespace bounds_rwkv7_enclosure_test
}  // namespace assay
