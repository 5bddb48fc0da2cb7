// The blocked evaluator against the literal transcription, and the ladder.
#include "reference/gated_forward.h"

#include <gtest/gtest.h>

#include "reference/gated_kernels.h"
#include "reference/literal.h"
#include "reference/operators/gla.h"
#include "reference/slices.h"
#include "src/base/numerics/bad_input.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

const Operator& gla() {
  return find_operator("gla");
}

template <typename Real>
Gla::Inputs<Real> literal_inputs(const Problem& p, const Slice& s) {
  const int64_t H = p.sizes.H, K = p.sizes.K, V = p.sizes.V;
  const auto rows = [&](const char* name, int64_t width) {
    const auto found = p.inputs->find(name);
    std::vector<double> x(static_cast<size_t>(s.tokens * width), 0);
    if (found != p.inputs->end()) decode_rows(found->second, s.first_row, s.tokens, H, s.h, width, x.data());
    return to_matrix<Real>(x.data(), s.tokens, width);
  };
  std::vector<double> S0(static_cast<size_t>(K * V), 0);
  if (const auto found = p.inputs->find("initial_state"); found != p.inputs->end())
    decode_run(found->second, (s.n * H + s.h) * K * V, K * V, S0.data());
  return {rows("q", K), rows("k", K), rows("v", V), rows("g", K), to_matrix<Real>(S0.data(), K, V),
          Real(p.scale)};
}

/// |a.mid - b.mid| <= a.rad + b.rad, up to the rounding of this comparison itself.
void expect_overlap(double mid, double rad, const Ball<double>& literal, const std::string& where) {
  EXPECT_LE(std::fabs(mid - literal.mid), (rad + literal.rad) * (1 + 1e-12))
      << where << ": " << mid << " +- " << rad << " and " << literal.mid << " +- " << literal.rad;
}

Ball<double> as_ball(const Ball<double>& x) {
  return x;
}
Ball<double> as_ball(const Ball<DoubleDouble>& x) {
  return to_ball(x);
}
Ball<double> as_ball(const Interval<40>& x) {
  return to_ball<40>(x);
}

template <typename Real>
void expect_agreement(const RandomProblem& p, const ReferenceResult& result, const std::string& where) {
  const Sizes& sizes = p.problem.sizes;
  for (const Slice& s : slices_of(p.problem)) {
    const auto y = Gla::forward(literal_inputs<Real>(p.problem, s));
    for (int64_t t = 0; t < s.tokens; ++t)
      for (int64_t v = 0; v < sizes.V; ++v) {
        const size_t i = static_cast<size_t>(((s.first_row + t) * sizes.H + s.h) * sizes.V + v);
        expect_overlap(result.outputs[0].mid[i], result.outputs[0].rad[i], as_ball(y.o(t, v)), where + " o");
      }
    for (int64_t c = 0; c < sizes.K; ++c)
      for (int64_t v = 0; v < sizes.V; ++v) {
        const size_t i = static_cast<size_t>(((s.n * sizes.H + s.h) * sizes.K + c) * sizes.V + v);
        expect_overlap(result.outputs[1].mid[i], result.outputs[1].rad[i], as_ball(y.S(c, v)),
                       where + " final_state");
      }
  }
}

const char* const kProfiles[] = {"absent", "none",  "near-one", "logsigmoid",
                                 "strong", "reset", "ladder",   "extreme"};

const RandomShape kShapes[] = {
    {2, 40, 2, 5, 3, {}, Dtype::fp32}, {1, 70, 1, 16, 33, {}, Dtype::bf16},
    {1, 1, 3, 1, 1, {}, Dtype::fp16},  {1, 50, 2, 3, 17, {0, 0, 33, 34, 50, 50}},
    {1, 0, 1, 4, 4, {}, Dtype::fp32},
};

TEST(GatedForward, overlaps_the_literal_transcription_over_balls_and_intervals) {
  uint64_t seed = 1;
  for (RandomShape shape : kShapes)
    for (const char* decay : kProfiles) {
      shape.decay = decay, shape.initial_state = seed % 2;
      RandomProblem p;
      draw_problem(shape, seed++, p);
      p.problem.arithmetic = recurrent_fp32(shape.K);
      const auto result = gla().evaluate(p.problem);
      const std::string where = std::string(decay) + " seed " + std::to_string(seed - 1);
      expect_agreement<Ball<double>>(p, result, where + " balls over double");
      expect_agreement<Ball<DoubleDouble>>(p, result, where + " balls over double-double");
      expect_agreement<Interval<40>>(p, result, where + " intervals");
      for (const auto& out : result.outputs) EXPECT_EQ(out.rung, 0) << where;
    }
}

TEST(GatedForward, encloses_narrowly_compared_with_the_bound_of_fp32_arithmetic) {
  for (const char* decay : kProfiles) {
    RandomShape shape;
    shape.T = 2000, shape.decay = decay;
    RandomProblem p;
    draw_problem(shape, 5, p);
    p.problem.arithmetic = recurrent_fp32(shape.K);
    for (const auto& out : gla().evaluate(p.problem).outputs) {
      EXPECT_EQ(out.wide, 0) << decay;
      for (size_t i = 0; i < out.mid.size(); ++i) ASSERT_LE(out.rad[i], 0x1p-10 * out.bound[i]) << decay;
    }
  }
}

TEST(GatedForward, climbs_the_ladder_where_the_bound_asks_for_more) {
  // Declared precision and the rung that can meet it; 2^-75 of the companion is less than a double can hold
  // of values near their companion, so the last case ends undecided without trying.
  const struct {
    double readout;
    int rung;
    bool decided;
  } cases[] = {{0x1p-30, 0, true}, {0x1p-40, 1, true}, {0x1p-75, 0, false}};
  for (const auto& c : cases) {
    RandomShape shape;
    shape.T = 60, shape.K = 1, shape.V = 20, shape.decay = "logsigmoid";
    RandomProblem p, plain;
    for (RandomProblem* each : {&p, &plain}) {
      draw_problem(shape, 11, *each);
      for (const char* name : {"q", "k", "v", "initial_state"})  // positive: no value far below its companion
        for (int64_t i = 0; i < each->at(name).size(); ++i)
          each->at(name).set(i, std::fabs(each->at(name).value(i)));
    }
    p.problem.arithmetic.readout = p.problem.arithmetic.write = p.problem.arithmetic.step = c.readout;
    plain.problem.arithmetic = recurrent_fp32(4);
    const auto precise = gla().evaluate(p.problem), first = gla().evaluate(plain.problem);
    for (size_t o = 0; o < 2; ++o) {
      const ReferenceOutput &x = precise.outputs[o], &y = first.outputs[o];
      EXPECT_EQ(x.rung, c.rung) << x.name << " " << c.readout;
      EXPECT_EQ(x.undecided.empty(), c.decided) << x.name << " " << x.undecided;
      for (size_t i = 0; i < x.mid.size(); ++i) {
        EXPECT_LE(std::fabs(x.mid[i] - y.mid[i]), (x.rad[i] + y.rad[i]) * (1 + 1e-9)) << x.name << i;
        if (c.decided) {
          EXPECT_LE(x.rad[i], 0x1p-10 * x.bound[i]);
        }
      }
    }
  }
}

TEST(GatedForward, needs_intervals_where_a_value_is_far_below_its_companion) {
  // o = w_1 - w_2 with decays that differ by 2^-60: |o| is 2^-60 of the companion, the bound 2^-95 of it.
  RandomShape shape;
  shape.T = 2, shape.K = 2, shape.V = 1, shape.initial_state = false;
  RandomProblem p;
  draw_problem(shape, 1, p);
  for (int64_t i = 0; i < 4; ++i) {
    p.at("q").set(i, i % 2 ? -1 : 1);
    p.at("k").set(i, i < 2 ? 1 : 0);
    p.at("g").set(i, i == 2 ? -0x1p-60 : i == 3 ? -0x1p-61 : 0);
  }
  p.at("v").set(0, 1);
  p.problem.scale = 1;
  p.problem.arithmetic.readout = p.problem.arithmetic.write = p.problem.arithmetic.step = 0x1p-95;
  const auto o = gla().evaluate(p.problem).outputs[0];
  EXPECT_EQ(o.rung, 2);
  // e^{-2^-60} - e^{-2^-61} = -2^-61 + 3 2^-123 - ..
  EXPECT_LE(std::fabs(o.mid[1] + 0x1p-61), 0x1p-113);
  EXPECT_LE(o.rad[1], 0x1p-10 * o.bound[1]);
}

TEST(GatedForward, has_radius_zero_on_the_interval_rung_where_exact_values_defeat_the_grid_test) {
  // One value on a far finer grid in a column of its own: sums of the other column still are doubles.
  RandomShape shape;
  shape.T = 3, shape.K = 1, shape.V = 2, shape.decay = "absent", shape.initial_state = false;
  RandomProblem p;
  draw_problem(shape, 1, p);
  for (const char* name : {"q", "k"})
    for (int64_t i = 0; i < p.at(name).size(); ++i) p.at(name).set(i, 1);
  for (int64_t i = 0; i < 6; ++i) p.at("v").set(i, i % 2 ? 0x1p-90 : 1.0);
  p.problem.scale = 1;
  const auto result = gla().evaluate(p.problem);
  EXPECT_EQ(result.outputs[0].rung, 2);
  for (const auto& out : result.outputs)
    for (size_t i = 0; i < out.mid.size(); ++i) EXPECT_EQ(out.rad[i], 0) << out.name << i;
  EXPECT_EQ(result.outputs[0].mid[4], 3);
  EXPECT_EQ(result.outputs[0].mid[5], 3 * 0x1p-90);
}

TEST(GatedForward, does_not_depend_on_the_number_of_threads) {
  RandomShape shape;
  shape.B = 2, shape.T = 100, shape.H = 2, shape.V = 70;
  RandomProblem p;
  draw_problem(shape, 21, p);
  p.problem.arithmetic = recurrent_fp32(4);
  const auto one = gla().evaluate(p.problem);
  p.problem.threads = 3;
  const auto three = gla().evaluate(p.problem);
  for (size_t o = 0; o < 2; ++o) {
    EXPECT_EQ(one.outputs[o].mid, three.outputs[o].mid);
    EXPECT_EQ(one.outputs[o].rad, three.outputs[o].rad);
    EXPECT_EQ(one.outputs[o].bound, three.outputs[o].bound);
  }
}

TEST(GatedForward, copies_the_initial_state_exactly_through_empty_sequences) {
  RandomShape shape;
  shape.T = 2, shape.cu_seqlens = {0, 0, 2, 2};
  RandomProblem p;
  draw_problem(shape, 31, p);
  p.problem.arithmetic = recurrent_fp32(4);
  const auto result = gla().evaluate(p.problem);
  const Tensor& S0 = p.at("initial_state");
  for (int64_t n : {0, 2})
    for (int64_t i = n * 16; i < n * 16 + 16; ++i) {
      EXPECT_EQ(result.outputs[1].mid[static_cast<size_t>(i)], S0.value(i));
      EXPECT_EQ(result.outputs[1].rad[static_cast<size_t>(i)], 0);
    }
}

TEST(GatedForward, marks_values_that_are_not_finite_and_gates_above_zero_as_undecided) {
  for (double poison : {double{NAN}, HUGE_VAL}) {
    RandomProblem p;
    draw_problem({}, 41, p);
    p.at("v").set(5, poison);  // t = 1, v = 1
    p.problem.arithmetic = recurrent_fp32(4);
    const auto out = gla().evaluate(p.problem).outputs[0];
    EXPECT_TRUE(std::isinf(out.rad[5]));
    EXPECT_TRUE(std::isfinite(out.rad[4]));
    EXPECT_FALSE(out.undecided.empty());
  }
  RandomProblem p;
  draw_problem({}, 41, p);
  p.at("g").set(4, 0.5);
  p.problem.arithmetic = recurrent_fp32(4);
  EXPECT_FALSE(gla().evaluate(p.problem).outputs[0].undecided.empty());
}

TEST(GatedForward, names_what_is_missing_or_of_the_wrong_size) {
  RandomProblem p;
  draw_problem({}, 1, p);
  Tensor q = p.at("q");
  p.inputs.erase("q");
  EXPECT_THROW(gla().evaluate(p.problem), BadInput);
  p.inputs["q"] = q;
  p.problem.sizes.K = 3;
  EXPECT_THROW(gla().evaluate(p.problem), BadInput);
  p.problem.sizes.K = 4;
  p.problem.cu_seqlens = {0, 9};
  EXPECT_THROW(gla().evaluate(p.problem), BadInput);
}

TEST(GatedKernels, return_the_same_bits_on_every_instruction_set) {
  const auto runnable = runnable_gated_kernels();
  constexpr int64_t K = 7, T = 9, W = kForwardColumns, A = kAdjointColumns;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto draw = [&](int64_t n) {
    std::vector<double> x(static_cast<size_t>(n));
    for (double& y : x) y = normal(random);
    return x;
  };
  std::vector<ForwardCoefficient> forward;
  std::vector<PreciseCoefficient> precise;
  std::vector<AdjointCoefficient> adjoint;
  for (int64_t i = 0; i < T * K; ++i) {
    const double a = std::fabs(normal(random)) / 4, k = normal(random), q = normal(random);
    forward.push_back({a, k, q, std::fabs(q), a * 1.0001, 1e-7});
    precise.push_back({a, a * 0x1p-56, k, q, std::fabs(q)});
    adjoint.push_back({a, k, std::fabs(k), q, std::fabs(q), a * 1.0001, 1e-7, a * 1.0002, 2e-7});
  }
  const auto v = draw(T * W), va = draw(T * A), d_o = draw(T * A), S = draw(K * W),
             states = draw(adjoint_state_size(K));
  std::vector<std::vector<double>> seen;
  for (const GatedKernels& kernels : runnable) {
    std::vector<double> all;
    const auto keep = [&](const std::vector<double>& x) { all.insert(all.end(), x.begin(), x.end()); };
    std::vector<double> s = S, p = S, e = S, o(T * W), oc(T * W), oe(T * W), lo(K * W), olo(T * W);
    kernels.forward(
        {T, K, forward.data(), 1e-7, v.data(), s.data(), p.data(), e.data(), o.data(), oc.data(), oe.data()});
    for (const auto* x : {&s, &p, &e, &o, &oc, &oe}) keep(*x);
    s = S, p = S;
    kernels.precise(
        {T, K, precise.data(), v.data(), s.data(), lo.data(), p.data(), o.data(), olo.data(), oc.data()});
    for (const auto* x : {&s, &lo, &p, &o, &olo, &oc}) keep(*x);
    std::vector<double> history(static_cast<size_t>((T + 1) * adjoint_state_size(K))), G = states, dv(T * A),
                                                                                       dva(T * A), dve(T * A);
    std::copy(states.begin(), states.end(), history.begin());
    kernels.states({T, K, adjoint.data(), 1e-7, va.data(), history.data(), true});
    std::vector<AdjointSums> sums(T * K);
    kernels.reverse({T, K, adjoint.data(), 2e-7, va.data(), d_o.data(), history.data(), G.data(), sums.data(),
                     dv.data(), dva.data(), dve.data()});
    for (const auto* x : {&history, &G, &dv, &dva, &dve}) keep(*x);
    for (const AdjointSums& x : sums)
      all.insert(all.end(),
                 {x.dq, x.dq_abs, x.dq_excess, x.dk, x.dk_abs, x.dk_excess, x.dg, x.dg_abs, x.dg_excess});
    seen.push_back(all);
  }
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i], seen[0]) << runnable[i].instruction_set;
}

}  // namespace
}  // namespace assay
