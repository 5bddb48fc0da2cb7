#include "reference/precise_columns.h"

#include <gtest/gtest.h>

#include "reference/literal.h"
#include "reference/operators/gla.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

TEST(PreciseColumns, hold_the_intervals_of_the_literal_transcription) {
  uint64_t seed = 1;
  for (const char* decay : {"none", "near-one", "logsigmoid", "strong", "reset", "ladder", "extreme"}) {
    std::mt19937_64 random(seed++);
    std::normal_distribution<double> normal;
    KeyInputs x{40, 5, {}, {}, {}, 0.3};
    for (int64_t i = 0; i < x.tokens * x.K; ++i) {
      x.q.push_back(normal(random)), x.k.push_back(normal(random)), x.g.push_back(draw_decay(decay, random));
    }
    std::vector<ColumnInputs> columns(3);
    for (ColumnInputs& column : columns) {
      for (int64_t t = 0; t < x.tokens; ++t) column.v.push_back(normal(random));
      for (int64_t c = 0; c < x.K; ++c) column.S0.push_back(normal(random));
    }
    const auto precise = precise_columns(x, columns);
    for (size_t j = 0; j < columns.size(); ++j) {
      using Real = Interval<60>;
      const auto exact = Gla::forward(Gla::Inputs<Real>{
          to_matrix<Real>(x.q.data(), x.tokens, x.K), to_matrix<Real>(x.k.data(), x.tokens, x.K),
          to_matrix<Real>(columns[j].v.data(), x.tokens, 1), to_matrix<Real>(x.g.data(), x.tokens, x.K),
          to_matrix<Real>(columns[j].S0.data(), x.K, 1), Real(x.scale)});
      const auto expect_held = [&](const Ball<double>& ball, const Real& value, const char* what) {
        const Real distance = abs(value - Real(ball.mid));
        EXPECT_LE(distance.right(), ball.rad)
            << decay << " " << what << " " << ball.mid << " +- " << ball.rad;
        EXPECT_LE(ball.rad, std::fabs(ball.mid) * 0x1p-52 + 0x1p-80)
            << decay << " " << what << ": a vacuous enclosure";
      };
      for (int64_t t = 0; t < x.tokens; ++t)
        expect_held(precise[j].o[static_cast<size_t>(t)], exact.o(t, 0), "o");
      for (int64_t c = 0; c < x.K; ++c) expect_held(precise[j].S[static_cast<size_t>(c)], exact.S(c, 0), "S");
    }
  }
}

}  // namespace
}  // namespace assay
