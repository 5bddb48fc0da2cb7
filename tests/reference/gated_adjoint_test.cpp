// The blocked adjoint against the literal transcription.
#include "reference/gated_adjoint.h"

#include <gtest/gtest.h>

#include "reference/literal.h"
#include "reference/operators/gla.h"
#include "reference/slices.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

const Operator& gla_operator() {
  return find_operator("gla");
}

SliceInputs slice_inputs(const RandomProblem& p, const Slice& s) {
  const Sizes& z = p.problem.sizes;
  SliceInputs x{s.tokens, z.K, z.V, {}, {}, {}, {}, {}, {}, {}, p.problem.scale};
  x.settings.scale = p.problem.scale;
  const auto rows = [&](const char* name, int64_t width, std::vector<double>& out) {
    if (!p.inputs.count(name)) return;
    out.resize(static_cast<size_t>(s.tokens * width));
    decode_rows(p.inputs.at(name), s.first_row, s.tokens, z.H, s.h, width, out.data());
  };
  rows("q", z.K, x.q), rows("k", z.K, x.k), rows("g", z.K, x.g), rows("v", z.V, x.v), rows("do", z.V, x.d_o);
  const auto state = [&](const char* name, std::vector<double>& out) {
    out.assign(static_cast<size_t>(z.K * z.V), 0);
    if (p.inputs.count(name))
      decode_run(p.inputs.at(name), (s.n * z.H + s.h) * z.K * z.V, z.K * z.V, out.data());
  };
  state("initial_state", x.S0), state("dfinal_state", x.dS);
  return x;
}

void expect_gradient_overlap(const ReferenceOutput& out, size_t i, const Ball<double>& literal,
                             const std::string& where) {
  EXPECT_LE(std::fabs(out.mid[i] - literal.mid), (out.rad[i] + literal.rad) * (1 + 1e-12))
      << where << " " << out.name << "[" << i << "] " << out.mid[i] << " +- " << out.rad[i] << " and "
      << literal.mid << " +- " << literal.rad;
}

void expect_gradients(const RandomProblem& p, const ReferenceResult& result, const std::string& where) {
  const Sizes& z = p.problem.sizes;
  for (const Slice& s : slices_of(p.problem)) {
    SliceGradients y;
    literal_adjoint_over<Gla, Interval<40>>(slice_inputs(p, s), y);
    for (const ReferenceOutput& out : result.outputs) {
      const bool state = out.name == "dinitial_state";
      const int64_t width = out.axes.back().size, rows = state ? z.K : s.tokens;
      const auto& literal = out.name == "dq"   ? y.q
                            : out.name == "dk" ? y.k
                            : out.name == "dv" ? y.v
                            : state            ? y.S0
                                               : y.g;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < width; ++c) {
          const int64_t row = state ? (s.n * z.H + s.h) * z.K + r : (s.first_row + r) * z.H + s.h;
          expect_gradient_overlap(out, static_cast<size_t>(row * width + c),
                                  literal[static_cast<size_t>(r * width + c)], where);
        }
    }
  }
}

TEST(GatedAdjoint, overlaps_the_literal_transcription_over_intervals) {
  const RandomShape shapes[] = {{2, 30, 2, 5, 3},
                                {1, 45, 1, 6, 70, {}, Dtype::bf16},
                                {1, 40, 2, 3, 5, {0, 0, 17, 18, 40}},
                                {1, 0, 1, 2, 2}};
  uint64_t seed = 1;
  for (RandomShape shape : shapes)
    for (const char* decay : {"absent", "none", "logsigmoid", "reset", "ladder", "extreme"}) {
      shape.decay = decay, shape.cotangents = true, shape.initial_state = seed % 2;
      RandomProblem p;
      draw_problem(shape, seed, p);
      if (seed % 3 == 0) p.inputs.erase("dfinal_state");
      const auto result = gla_operator().evaluate_adjoint(p.problem);
      EXPECT_EQ(result.outputs.size(), 3u + (std::string(decay) != "absent") + shape.initial_state);
      expect_gradients(p, result, std::string(decay) + " seed " + std::to_string(seed));
      for (const auto& out : result.outputs) EXPECT_TRUE(out.undecided.empty()) << out.undecided;
      ++seed;
    }
}

TEST(GatedAdjoint, does_not_depend_on_the_number_of_threads) {
  RandomShape shape;
  shape.T = 60, shape.V = 100, shape.cotangents = true;
  RandomProblem p;
  draw_problem(shape, 3, p);
  const auto one = gla_operator().evaluate_adjoint(p.problem);
  p.problem.threads = 3;
  const auto three = gla_operator().evaluate_adjoint(p.problem);
  for (size_t o = 0; o < one.outputs.size(); ++o) {
    EXPECT_EQ(one.outputs[o].mid, three.outputs[o].mid) << one.outputs[o].name;
    EXPECT_EQ(one.outputs[o].rad, three.outputs[o].rad) << one.outputs[o].name;
  }
}

TEST(GatedAdjoint, radii_stay_below_one_thousandth_of_an_fp32_rounding_at_4096_tokens) {
  RandomShape shape;
  shape.T = 4096, shape.K = 8, shape.V = 8, shape.cotangents = true;
  RandomProblem p;
  draw_problem(shape, 4, p);
  for (const auto& out : gla_operator().evaluate_adjoint(p.problem).outputs) {
    EXPECT_EQ(out.rung, 0);
    for (size_t i = 0; i < out.mid.size(); ++i) ASSERT_LE(out.rad[i], 0x1p-34 * out.companion[i]) << out.name;
  }
}

}  // namespace
}  // namespace assay
