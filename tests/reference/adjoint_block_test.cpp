#include "reference/adjoint_block.h"

#include <gtest/gtest.h>

#include <optional>

#include "reference/literal.h"
#include "reference/operators/gla.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

struct RandomAdjoint {
  RandomProblem random;
  std::mutex mutex;
  ReferenceOutput dq, dk, dv, dg, dS0;
  const GatedAdjointRow row{Gla::form(), &find_operator("gla").parameters, nullptr};
  std::optional<GatedTensors> tensors;
  std::optional<AdjointProblem> problem;

  explicit RandomAdjoint(RandomShape shape) {
    shape.cotangents = true;
    draw_problem(shape, 5, random);
    const Sizes& s = random.problem.sizes;
    const auto sized = [](ReferenceOutput& out, int64_t n) {
      for (auto* field : {&out.mid, &out.rad, &out.bound, &out.companion, &out.underflow})
        field->assign(static_cast<size_t>(n), 0);
    };
    for (ReferenceOutput* out : {&dq, &dk, &dg}) sized(*out, s.B * s.T * s.H * s.K);
    sized(dv, s.B * s.T * s.H * s.V), sized(dS0, s.N * s.H * s.K * s.V);
    tensors.emplace(random.problem, row.form);
    problem.emplace(AdjointProblem{random.problem,
                                   row,
                                   *tensors,
                                   random.inputs.at("do"),
                                   &random.inputs.at("dfinal_state"),
                                   AdjointBoundModel(random.problem.adjoint, true),
                                   {},
                                   &dq,
                                   &dk,
                                   &dv,
                                   &dg,
                                   &dS0,
                                   nullptr,
                                   mutex});
  }
  /// The slice by its transcription in double.
  Gla::Inputs<double> literal(const Slice& slice) const {
    const Sizes& s = random.problem.sizes;
    const auto rows = [&](const char* name, int64_t width) {
      std::vector<double> x(static_cast<size_t>(slice.tokens * width));
      decode_rows(random.inputs.at(name), slice.first_row, slice.tokens, s.H, slice.h, width, x.data());
      return to_matrix<double>(x.data(), slice.tokens, width);
    };
    const auto state = [&](const char* name) {
      std::vector<double> x(static_cast<size_t>(s.K * s.V));
      decode_run(random.inputs.at(name), problem->state_row(slice, 0), s.K * s.V, x.data());
      return to_matrix<double>(x.data(), s.K, s.V);
    };
    return Gla::adjoint(Gla::Inputs<double>{rows("q", s.K), rows("k", s.K), rows("v", s.V), rows("g", s.K),
                                            state("initial_state"), random.problem.scale},
                        Gla::Outputs<double>{rows("do", s.V), state("dfinal_state")});
  }
};

/// 70 tokens: more than one run of states that is made again; 40 columns: two blocks, the second not full.
TEST(AdjointBlock, adds_its_columns_share_to_the_sums_and_writes_what_is_its_own) {
  RandomAdjoint f({1, 70, 2, 3, 40});
  const Slice slice = slices_of(f.random.problem)[1];
  std::vector<AdjointSums> sums(70 * 3);
  for (int64_t v0 = 0; v0 < 40; v0 += kAdjointColumns) AdjointBlock(*f.problem, slice, v0).run(sums);
  const Gla::Inputs<double> exact = f.literal(slice);
  for (int64_t t = 0; t < 70; ++t) {
    for (int64_t c = 0; c < 3; ++c) {
      const AdjointSums& sum = sums[static_cast<size_t>(t * 3 + c)];
      EXPECT_NEAR(sum.dq, exact.q(t, c), 1e-11 * sum.dq_abs) << t;
      EXPECT_NEAR(sum.dk, exact.k(t, c), 1e-11 * sum.dk_abs) << t;
      EXPECT_NEAR(sum.dg, exact.g(t, c), 1e-11 * sum.dg_abs) << t;
    }
    for (int64_t v = 0; v < 40; ++v) {
      const auto i = static_cast<size_t>(f.problem->output_row(slice, t) + v);
      EXPECT_NEAR(f.dv.mid[i], exact.v(t, v), 1e-11 * f.dv.companion[i]) << t << " " << v;
    }
  }
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t v = 0; v < 40; ++v) {
      const auto i = static_cast<size_t>(f.problem->state_row(slice, c) + v);
      EXPECT_NEAR(f.dS0.mid[i], exact.S0(c, v), 1e-11 * f.dS0.companion[i]) << c << " " << v;
    }
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(f.dv.mid[i], 0) << "the first head's";
}

TEST(AdjointBlock, is_part_of_a_sum_one_block_of_columns_alone_differs) {
  RandomAdjoint f({1, 10, 1, 2, 40});
  const Slice slice = slices_of(f.random.problem)[0];
  std::vector<AdjointSums> first(10 * 2), both(10 * 2);
  AdjointBlock(*f.problem, slice, 0).run(first);
  AdjointBlock(*f.problem, slice, 0).run(both), AdjointBlock(*f.problem, slice, kAdjointColumns).run(both);
  EXPECT_LT(first[0].dq_abs, both[0].dq_abs);
}

}  // namespace
}  // namespace assay
