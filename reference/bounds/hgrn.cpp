// The bounds of hgrn: those of bound.h and bound_adjoint.h for a state of one row per channel and one column,
// with x_t written as it is: o = h (readout), dx = G (the adjoint's readout), dg = e^g h_{t-1} G.
#include "reference/operators/hgrn.h"

#include "reference/bounds/diagonal_state.h"
#include "reference/bounds/storage.h"

namespace assay {
namespace {

using In = Hgrn::In;
using Out = Hgrn::Out;

constexpr double kOne = 1;

struct Channels {
  const SliceProblem& p;
  const SliceMatrix &x, &g, &h0;
  int64_t T, D;

  explicit Channels(const SliceProblem& p)
      : p(p),
        x(p.inputs[In::x]),
        g(p.inputs[In::g]),
        h0(p.inputs[In::initial_state]),
        T(p.slice.tokens),
        D(x.columns) {}
  double at(const SliceMatrix& m, int64_t t, int64_t c) const {
    return m.values[static_cast<size_t>(t * D + c)];
  }
};

double roundings(int64_t T) {
  return excess_roundings(T, 1);
}

}  // namespace

SliceBounds Hgrn::forward_bound(const SliceProblem& p) {
  const Channels f(p);
  const bool exact = claims_exact(p.problem->arithmetic);
  const Arithmetic a = arithmetic_of_run(p.problem->arithmetic, decays(p, "g"));
  const double flushed = kUnderflowEvents * underflow_of(a, exact) * path_inflation(a, f.T);
  const Storage of_o(a.output_roundoff, dtype_of(p, {"x"})), of_state(0, Dtype::fp32);
  DiagonalState h(a, f.D, 1);
  h.load(f.h0.values);
  std::vector<double> R(static_cast<size_t>(f.D));
  for (int64_t c = 0; c < f.D; ++c)
    R[static_cast<size_t>(c)] = 1 + std::fabs(f.h0.values[static_cast<size_t>(c)]);
  SliceBounds y(Out::count);
  for (int64_t t = 0; t < f.T; ++t) {
    for (int64_t c = 0; c < f.D; ++c) {
      const auto i = static_cast<size_t>(c);
      h.advance(c, f.at(f.g, t, c), f.at(f.x, t, c), 0, &kOne, nullptr);
      R[i] += 1 + std::fabs(f.at(f.x, t, c));
      const double lost = unless_over(R[i], flushed * R[i]);
      y[Out::o].push_back(of_o.element(h.S[i], h.P[i], h.E[i] + h.model().read_out() * (h.P[i] + h.E[i]),
                                       lost, roundings(t + 1)));
    }
    h.pass(t + 1, f.T);
  }
  for (int64_t c = 0; c < f.D; ++c) {
    const auto i = static_cast<size_t>(c);
    const double lost = f.T == 0 ? 0 : unless_over(R[i], flushed * R[i]);
    y[Out::final_state].push_back(of_state.element(h.S[i], h.P[i], h.E[i], lost, roundings(f.T)));
  }
  return y;
}

SliceBounds Hgrn::adjoint_bound(const SliceProblem& p) {
  const Channels f(p);
  const AdjointArithmetic& declared = p.problem->adjoint;
  const bool decaying = decays(p, "g"), exact = claims_exact(declared);
  const Arithmetic forward = arithmetic_of_run(declared.state, decaying),
                   reverse = arithmetic_of_run(declared.adjoint, decaying);
  const double gate_readout = declared.gate_readout + (decaying ? declared.gate_readout_decayed : 0);
  const double flushed = kUnderflowEvents *
                         std::fmax(underflow_of(forward, exact), underflow_of(reverse, exact)) *
                         path_inflation(forward, f.T) * path_inflation(reverse, f.T) * (1 + gate_readout);
  const Storage of_x(declared.state.output_roundoff, dtype_of(p, {"x"})),
      of_g(declared.gate_output_roundoff, dtype_of(p, {"g"})), of_state(0, Dtype::fp32);
  const auto n = static_cast<size_t>(f.T * f.D);
  std::vector<double> S(n), P(n), E(n), R(n);  // before each token
  DiagonalState h(forward, f.D, 1), G(reverse, f.D, 1);
  h.load(f.h0.values);
  std::vector<double> sum(static_cast<size_t>(f.D));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = 1 + std::fabs(f.h0.values[i]);
  for (int64_t t = 0; t < f.T; ++t) {
    for (int64_t c = 0; c < f.D; ++c) {
      const auto i = static_cast<size_t>(c), at = static_cast<size_t>(t * f.D + c);
      S[at] = h.S[i], P[at] = h.P[i], E[at] = h.E[i], R[at] = sum[i];
      h.advance(c, f.at(f.g, t, c), f.at(f.x, t, c), 0, &kOne, nullptr);
      sum[i] += 1 + std::fabs(f.at(f.x, t, c));
    }
    h.pass(t + 1, f.T);
  }
  const SliceMatrix &d_o = p.cotangents[Out::o], &dh = p.cotangents[Out::final_state];
  G.load(dh.values);
  if (f.T > 0) G.step_initial();
  SliceBounds y{std::vector<ElementBound>(n), std::vector<ElementBound>(n), {}};
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = 1 + std::fabs(dh.values[i]);
  for (int64_t t = f.T; t-- > 0;) {
    for (int64_t c = 0; c < f.D; ++c) {
      const auto i = static_cast<size_t>(c), at = static_cast<size_t>(t * f.D + c);
      G.write(c, f.at(d_o, t, c), 0, &kOne, nullptr);
      sum[i] += 1 + std::fabs(f.at(d_o, t, c));
      const double reach = sum[i] * R[at];
      y[In::x][at] = of_x.element(G.S[i], G.P[i], G.E[i] + G.model().read_out() * (G.P[i] + G.E[i]),
                                  unless_over(reach, flushed * sum[i]), 2 * roundings(f.T));
      const double g = f.at(f.g, t, c), e = exponential(g);
      const double d = std::fmax(h.model().decay_error(g), G.model().decay_error(g));
      const double relative = d + (1 + d) * gate_readout;
      const double companion = e * P[at] * G.P[i], excess = e * (P[at] * G.E[i] + E[at] * (G.P[i] + G.E[i]));
      y[In::g][at] = of_g.element(e * S[at] * G.S[i], companion, excess + relative * (companion + excess),
                                  unless_over(reach, flushed * sum[i] * R[at]), 2 * roundings(f.T));
      G.cross(c, g);
    }
    G.pass(t, f.T);
  }
  for (int64_t c = 0; c < f.D; ++c) {
    const auto i = static_cast<size_t>(c);
    const double lost = f.T == 0 ? 0 : unless_over(sum[i], flushed * sum[i]);
    y[In::initial_state].push_back(of_state.element(G.S[i], G.P[i], G.E[i], lost, 2 * roundings(f.T)));
  }
  return y;
}

}  // namespace assay
